# The files of isa/ that this processor can have, with the flags of each: ISA_SOURCES. Flags hold for the directory that
# includes this, so the tests' emulated builds can take the same files without.

set(ISA_SOURCES attend_scalar.cc detect.cc masked_scalar.cc scalar.cc)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND ISA_SOURCES attend_avx2.cc masked_avx2.cc masked_avx512.cc avx2.cc avxvnni.cc avx512vnni.cc
       amx.cc)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  list(APPEND ISA_SOURCES attend_neon.cc masked_neon.cc neon.cc)
endif()
list(TRANSFORM ISA_SOURCES PREPEND ${CMAKE_CURRENT_LIST_DIR}/)

set(AVX2 -mavx2 -mfma -mf16c)
set(AVX512VNNI ${AVX2} -mavx512f -mavx512bw -mavx512vl -mavx512vnni)
set(FLAGS_attend_avx2 ${AVX2})
set(FLAGS_masked_avx2 ${AVX2})
set(FLAGS_avx2 ${AVX2})
# GCC takes the placeholders of its own AVX-512 header for variables without a value.
set(FLAGS_masked_avx512 ${AVX2} -mavx512f -Wno-maybe-uninitialized)
set(FLAGS_avxvnni ${AVX2} -mavxvnni)
set(FLAGS_avx512vnni ${AVX512VNNI})
set(FLAGS_amx ${AVX512VNNI} -mamx-tile -mamx-int8)
set(FLAGS_attend_neon -march=armv8.2-a+dotprod)
set(FLAGS_masked_neon -march=armv8.2-a+dotprod)
set(FLAGS_neon -march=armv8.2-a+dotprod)
foreach(SOURCE ${ISA_SOURCES})
  get_filename_component(NAME ${SOURCE} NAME_WE)
  set_source_files_properties(${SOURCE} PROPERTIES COMPILE_OPTIONS "${FLAGS_${NAME}}")
endforeach()
