// In the place of isa/detect.cc: the instruction sets whose intrinsics immintrin.h, beside this file, emulates.

#include "isa/detect.h"

namespace treefill {

const std::vector<InstructionSet>& instruction_sets() {
  // Only their products are of their own. The rest is AVX2's, tested where it runs; here scalar stands in for it.
  static const std::vector<InstructionSet> sets{
      {"amx", linear_amx, quantise_scalar, weigh_scalar, softmax_scalar, swiglu_scalar},
      {"avx512vnni", linear_avx512vnni, quantise_scalar, weigh_scalar, softmax_scalar, swiglu_scalar},
      {"avxvnni", linear_avxvnni, quantise_scalar, weigh_scalar, softmax_scalar, swiglu_scalar},
  };
  return sets;
}

}  // namespace treefill
