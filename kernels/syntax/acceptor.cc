#include "syntax/acceptor.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace treefill::syntax {

Acceptor::Acceptor(std::shared_ptr<const Grammar> grammar) : parser_(std::move(grammar)) {
  versions_.push_back(parser_.beginning());
}

// What was given up for a text that is gone is no reason to allow everything after another.
void Acceptor::end_trial() {
  if (gave_up_on_trial_) parser_.take_up_again();
  gave_up_on_trial_ = false;
}

template <typename Judge>
bool Acceptor::on_trial(std::string_view more, size_t n_back, Judge judge) {
  end_trial();
  if (!gave_up().empty()) return true;
  n_back = std::min(n_back, saved_.size());
  const Saved* before = n_back ? &saved_[saved_.size() - n_back] : nullptr;
  Versions versions = before ? before->versions : versions_;
  const size_t length = before ? before->length : text_.size();
  const std::string left_out = text_.substr(length);
  text_.replace(length, std::string::npos, more);
  const bool verdict = judge(versions);
  text_.replace(length, std::string::npos, left_out);
  gave_up_on_trial_ = !gave_up().empty();  // told until something else is asked
  return verdict || gave_up_on_trial_;
}

bool Acceptor::allows(std::string_view more, size_t n_back) {
  return on_trial(more, n_back, [this](Versions& versions) { return parser_.read(text_, versions); });
}

bool Acceptor::accepts_whole(std::string_view rest, size_t n_back) {
  return on_trial(rest, n_back, [this](Versions& versions) { return parser_.read_whole(text_, versions); });
}

std::string Acceptor::forced(size_t limit) {
  std::string bytes;
  for (int next = 0; next >= 0 && bytes.size() < limit;) {
    next = -1;
    bytes.push_back(0);
    for (int i = 0; i < 256; ++i) {
      const int byte = (i + ' ') % 256;  // what is likeliest to be another way comes first
      bytes.back() = static_cast<char>(byte);
      if (!allows(bytes)) continue;
      const bool is_other = next >= 0;
      next = is_other ? -1 : byte;
      if (is_other) break;
    }
    if (next < 0)
      bytes.pop_back();
    else
      bytes.back() = static_cast<char>(next);
  }
  return bytes;
}

bool Acceptor::fill_mask(const std::shared_ptr<const GrammarVocabulary>& vocabulary, std::span<uint32_t> words) {
  if (vocabulary->grammar() != parser_.grammar())
    throw std::invalid_argument("The vocabulary is spelled for another grammar.");
  end_trial();
  if (walked_ != vocabulary) {
    walk_ = std::make_unique<MaskWalk>(parser_, vocabulary);
    walked_ = vocabulary;
  }
  const bool had_given_up = !gave_up().empty();
  const bool is_decided = walk_->fill(text_, versions_, words);
  gave_up_on_trial_ = !is_decided && !had_given_up;
  return is_decided;
}

bool Acceptor::accept(std::string_view more) {
  end_trial();
  saved_.push_back({text_.size(), versions_, refused_at(), !gave_up().empty()});
  text_.append(more);
  const bool is_allowed = parser_.read(text_, versions_);
  if (!is_allowed) versions_.clear();
  return is_allowed;
}

void Acceptor::rollback(size_t n) {
  for (; n > 0 && !saved_.empty(); --n) {
    text_.resize(saved_.back().length);
    versions_ = std::move(saved_.back().versions);
    parser_.refused_at = saved_.back().refused_at;
    if (!saved_.back().had_given_up && !gave_up().empty()) parser_.take_up_again();
    saved_.pop_back();
  }
}

}  // namespace treefill::syntax
