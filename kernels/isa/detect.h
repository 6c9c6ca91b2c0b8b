// Which instruction sets this machine has, and the kernels of each.

#ifndef TREEFILL_ISA_DETECT_H_
#define TREEFILL_ISA_DETECT_H_

#include <string>
#include <vector>

#include "isa/kernel.h"

namespace treefill {

// What reads logits under a token mask.
struct MaskedKernels {
  MaskedArgmaxFn argmax;
  MaskedAboveFn above;
  MaskedSumExpFn sum_exp;
};

struct InstructionSet {
  const char* name;
  LinearFn linear;
  QuantiseFn quantise;
  WeighFn weigh;
  SoftmaxFn softmax;
  SwigluFn swiglu;
  MaskedKernels masked;
};

// Those that this machine runs, the quickest first; "scalar" is always the last.
// Asks the operating system for AMX's tile state when the processor has it.
const std::vector<InstructionSet>& instruction_sets();

// The one in use: the quickest, or the one that TREEFILL_ISA names.
// Throws std::invalid_argument, naming what there is, when this machine cannot run that one.
const InstructionSet& active_instruction_set();

// Makes `name` the one in use from the next product on; an empty name goes back to the default.
// Throws as active_instruction_set does.
void use_instruction_set(const std::string& name);

}  // namespace treefill

#endif  // TREEFILL_ISA_DETECT_H_
