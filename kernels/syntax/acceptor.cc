#include "syntax/acceptor.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace treefill::syntax {

namespace {

constexpr size_t kMaxIdle = 2;

}  // namespace

std::unique_ptr<ParserPool::Member> ParserPool::take() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      auto member = std::move(idle_.back());
      idle_.pop_back();
      return member;
    }
  }
  return std::make_unique<Member>(grammar_);
}

void ParserPool::give_back(std::unique_ptr<Member> member) {
  if (!member->parser.start_anew()) return;
  std::lock_guard lock(mutex_);
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(member));
}

void ParserPool::forget() {
  std::lock_guard lock(mutex_);
  idle_.clear();
}

Acceptor::Acceptor(std::shared_ptr<ParserPool> pool) : pool_(std::move(pool)), member_(pool_->take()) {
  versions_.push_back(parser().beginning());
}

Acceptor::~Acceptor() { pool_->give_back(std::move(member_)); }

// What was given up for a text that is gone is no reason to allow everything after another.
void Acceptor::end_trial() {
  if (gave_up_on_trial_) parser().take_up_again();
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
  return on_trial(more, n_back, [this](Versions& versions) { return parser().read(text_, versions); });
}

bool Acceptor::accepts_whole(std::string_view rest, size_t n_back) {
  return on_trial(rest, n_back, [this](Versions& versions) { return parser().read_whole(text_, versions); });
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

MaskWalk::Outcome Acceptor::fill_mask(const std::shared_ptr<const GrammarVocabulary>& vocabulary,
                                      std::span<uint32_t> words, MaskDictionary* dictionary, MaskWalk::Effort effort) {
  if (vocabulary->grammar() != pool_->grammar())
    throw std::invalid_argument("The vocabulary is spelled for another grammar.");
  end_trial();
  if (member_->vocabulary != vocabulary) {
    member_->walk = std::make_unique<MaskWalk>(parser(), vocabulary);
    member_->vocabulary = vocabulary;
  }
  const bool had_given_up = !gave_up().empty();
  const MaskWalk::Outcome outcome = member_->walk->fill(text_, versions_, words, dictionary, effort);
  gave_up_on_trial_ = outcome == MaskWalk::Outcome::kGaveUp && !had_given_up;
  return outcome;
}

bool Acceptor::accept(std::string_view more) {
  end_trial();
  saved_.push_back({text_.size(), versions_, refused_at(), !gave_up().empty()});
  text_.append(more);
  const bool is_allowed = parser().read(text_, versions_);
  if (!is_allowed) versions_.clear();
  return is_allowed;
}

void Acceptor::rollback(size_t n) {
  for (; n > 0 && !saved_.empty(); --n) {
    text_.resize(saved_.back().length);
    versions_ = std::move(saved_.back().versions);
    parser().refused_at = saved_.back().refused_at;
    if (!saved_.back().had_given_up && !gave_up().empty()) parser().take_up_again();
    saved_.pop_back();
  }
}

}  // namespace treefill::syntax
