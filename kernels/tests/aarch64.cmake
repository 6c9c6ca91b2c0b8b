# A toolchain file: cross-builds the kernels and their tests for AArch64, to be run by qemu-aarch64 on any machine.
# Static, so that qemu needs no libraries of that architecture.

set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_EXE_LINKER_FLAGS_INIT -static)
