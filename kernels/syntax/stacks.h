// Parse stacks that share what they have in common.
//
// A stack is a number: the one of its top, which knows the one below. Equal stacks have equal numbers, so comparing,
// copying and going back to an older one cost nothing; nothing is freed before the pool is.
//
// A stack may stand on a cut: what lies below is not known, but for some facts about it.

#ifndef TREEFILL_SYNTAX_STACKS_H_
#define TREEFILL_SYNTAX_STACKS_H_

#include <cstdint>
#include <vector>

#include "syntax/language.h"

namespace treefill::syntax {

using Stack = uint32_t;
constexpr Stack kNoStack = 0xFFFFFFFF;

class StackPool {
 public:
  StackPool() : slots_(1024, kNoStack) {}

  size_t n_nodes() const { return nodes_.size(); }
  StateId state(Stack stack) const { return nodes_[stack].state; }

  Stack below(Stack stack) const { return nodes_[stack].below; }

  Stack cut(uint16_t facts) { return push(kBelowCut, facts); }
  bool is_cut(Stack stack) const { return nodes_[stack].below == kBelowCut; }
  uint16_t facts_below(Stack cut) const { return nodes_[cut].state; }

  // `under` may be kNoStack.
  Stack push(Stack under, StateId state) {
    if (nodes_.size() * 2 >= slots_.size()) grow();
    for (size_t slot = slot_of(under, state);; slot = (slot + 1) & (slots_.size() - 1)) {
      if (slots_[slot] == kNoStack) {
        slots_[slot] = static_cast<Stack>(nodes_.size());
        nodes_.push_back({under, state});
        return slots_[slot];
      }
      const Node& node = nodes_[slots_[slot]];
      if (node.below == under && node.state == state) return slots_[slot];
    }
  }

  // The stack without its topmost states; kNoStack where it has not so many below the bottom one, and the cut where it
  // has not so many above that.
  Stack pop(Stack stack, unsigned n_states) const {
    for (; n_states > 0 && stack != kNoStack && !is_cut(stack); --n_states) stack = nodes_[stack].below;
    return stack;
  }

 private:
  static constexpr Stack kBelowCut = 0xFFFFFFFE;

  struct Node {
    Stack below;
    StateId state;
  };

  size_t slot_of(Stack under, StateId state) const {
    const uint64_t key = static_cast<uint64_t>(under) << 16 | state;
    return (key * 0x9E3779B97F4A7C15u >> 20) & (slots_.size() - 1);
  }

  void grow() {
    slots_.assign(slots_.size() * 2, kNoStack);
    for (Stack stack = 0; stack < nodes_.size(); ++stack) {
      size_t slot = slot_of(nodes_[stack].below, nodes_[stack].state);
      while (slots_[slot] != kNoStack) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = stack;
    }
  }

  std::vector<Node> nodes_;
  std::vector<Stack> slots_;  // open addressing; a power of two, at most half full
};

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_STACKS_H_
