// In the place of isa/detect.cc: the instruction sets whose intrinsics immintrin.h, beside this file, emulates.

#include "isa/detect.h"

namespace treefill {

namespace {

constexpr MaskedKernels kMaskedAvx512{masked_argmax_avx512, masked_above_avx512, masked_sum_exp_avx512};
constexpr MaskedKernels kMaskedScalar{masked_argmax_scalar, masked_above_scalar, masked_sum_exp_scalar};

// Only these are of their own. The rest is AVX2's, tested where it runs; here scalar stands in for it.
InstructionSet emulated(const char* name, LinearFn linear, const MaskedKernels& masked) {
  return {name, linear, quantise_scalar, weigh_scalar, softmax_scalar, swiglu_scalar, masked};
}

}  // namespace

const std::vector<InstructionSet>& instruction_sets() {
  static const std::vector<InstructionSet> sets{
      emulated("amx", linear_amx, kMaskedAvx512),
      emulated("avx512vnni", linear_avx512vnni, kMaskedAvx512),
      emulated("avxvnni", linear_avxvnni, kMaskedScalar),
  };
  return sets;
}

}  // namespace treefill
