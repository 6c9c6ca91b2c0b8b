// What a mask is found by in the dictionary.

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "syntax/bytes.h"
#include "syntax/mask_walk.h"

namespace treefill::syntax {
namespace {

constexpr size_t kMaxHarmless = 64;  // bytes of a text in a key

// Layout, what strings and comments begin with, and what stands for anything in a text of which only that counts.
bool is_harmless(std::string_view text) {
  return text.size() <= kMaxHarmless && text.find_first_not_of(" \t\r\n#ax\"'`{}\\/*-<>$") == std::string_view::npos;
}

}  // namespace

// All that a mask of the config depends on, as bytes that mean the same in every process.
const std::string& MaskWalk::key_of(Id config, bool has_line_feed) {
  std::string& key = configs_[config].keys[has_line_feed];
  if (key.empty()) {
    key.push_back(static_cast<char>(has_line_feed));
    key.push_back(static_cast<char>(is_column_kept_));
    write(config, key, configs_[config].is_private);
  }
  return key;
}

void MaskWalk::write(Id config, std::string& key, bool& is_private) const {
  if (config == kNowhere) return append(key, kNowhere);
  std::vector<std::string> parses;
  for (Id parse : configs_[config].parses) write(parses_[parse], parses.emplace_back(), is_private);
  std::sort(parses.begin(), parses.end());
  append(key, static_cast<uint32_t>(parses.size()));
  for (const std::string& parse : parses) key += parse;
}

void MaskWalk::write(const Parse& parse, std::string& key, bool& is_private) const {
  const Lexeme& lexeme = lexemes_[parse.lexeme];
  const std::string_view memory = parser_.scanner_.memory(parse.scanner);
  write(parse.stack, key);
  append(key, parse.before);
  append_text(key, memory);
  append_text(key, pasts_[parse.past]);
  append_text(key, lexeme.key);
  const ScannerModel* model = parser_.grammar()->model;
  const bool is_memory_harmless = memory.empty() || (model && model->remembers_layout_only());
  is_private |= !is_memory_harmless || !is_harmless(pasts_[parse.past]) || !is_harmless(lexeme.written);
  std::vector<std::string> alternatives;
  for (const Alternative& each : lexeme.alternatives) {
    write(each.stack, alternatives.emplace_back());
    write(each.config, alternatives.back(), is_private);
  }
  std::sort(alternatives.begin(), alternatives.end());
  append(key, static_cast<uint32_t>(alternatives.size()));
  for (const std::string& each : alternatives) key += each;
}

// From the top down.
void MaskWalk::write(Stack stack, std::string& key) const {
  const StackPool& stacks = parser_.stacks_;
  std::string states;
  for (; stack != kNoStack && !stacks.is_cut(stack); stack = stacks.below(stack)) append(states, stacks.state(stack));
  append_text(key, states);
  append(key, stack == kNoStack);
  append(key, stack == kNoStack ? uint16_t{0} : stacks.facts_below(stack));
}

}  // namespace treefill::syntax
