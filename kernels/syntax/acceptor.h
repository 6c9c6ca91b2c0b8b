// Decides whether a text is the beginning of something that a grammar accepts, while it grows and shrinks.

#ifndef TREEFILL_SYNTAX_ACCEPTOR_H_
#define TREEFILL_SYNTAX_ACCEPTOR_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "syntax/mask_walk.h"
#include "syntax/parser.h"
#include "syntax/situation.h"
#include "syntax/vocabulary.h"

namespace treefill::syntax {

// Parsers of one grammar that serve one text after the other: what a parser and its masks have found out is true of
// any text. Safe to use from many threads.
class ParserPool {
 public:
  struct Member {
    explicit Member(std::shared_ptr<const Grammar> grammar) : parser(std::move(grammar)) {}

    Parser parser;
    std::shared_ptr<const GrammarVocabulary> vocabulary;  // of the masks
    std::unique_ptr<MaskWalk> walk;                       // made for the first one
  };

  explicit ParserPool(std::shared_ptr<const Grammar> grammar) : grammar_(std::move(grammar)) {}

  const std::shared_ptr<const Grammar>& grammar() const { return grammar_; }
  std::unique_ptr<Member> take();
  // Kept for the next text; unless it has grown large, or there are enough.
  void give_back(std::unique_ptr<Member> member);
  // Keeps none of those that are idle.
  void forget();

 private:
  std::shared_ptr<const Grammar> grammar_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Member>> idle_;
};

// One text that grows, and may shrink again. One thread at a time.
class Acceptor {
 public:
  explicit Acceptor(std::shared_ptr<ParserPool> pool);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Is the text so far, with `more` after it, still the beginning of something accepted? The text stays as it is.
  // The last `n_back` accepted pieces are left out of it.
  bool allows(std::string_view more, size_t n_back = 0);
  // The same, and `more` becomes part of the text, whatever the answer.
  bool accept(std::string_view more);
  // Takes the last `n` accepted pieces off again.
  void rollback(size_t n);
  // Would the text be accepted as a whole with `rest` after it? The last `n_back` accepted pieces are left out again.
  bool accepts_whole(std::string_view rest, size_t n_back = 0);
  // The bytes that must come next, as far as there is but one way on, and at most so many.
  std::string forced(size_t limit);
  // Sets the bits of the tokens that may come next, in a mask that is all 0: those that `allows` allows; all of them
  // where the grammar gave up, and what means nothing where the mask is unknown.
  MaskWalk::Outcome fill_mask(const std::shared_ptr<const GrammarVocabulary>& vocabulary, std::span<uint32_t> words,
                              MaskDictionary* dictionary = nullptr, MaskWalk::Effort effort = MaskWalk::Effort::kWalk);
  // What the halves of the last mask are found by in a dictionary.
  std::vector<std::string> mask_keys() const {
    return member_->walk ? member_->walk->keys() : std::vector<std::string>();
  }
  // How much the last mask took.
  MaskWalk::Counts mask_counts() const { return member_->walk ? member_->walk->counts() : MaskWalk::Counts{}; }
  // The terminals that may come next, where a token has just ended.
  std::vector<Symbol> expected() { return parser().expected(versions_); }
  // What the text's end is about.
  Situation situation(const Brackets& brackets) { return parser().situation(text_, versions_, brackets); }

  const Grammar& grammar() const { return *pool_->grammar(); }
  // All that was accepted.
  const std::string& text() const { return text_; }
  bool is_alive() const { return !versions_.empty(); }
  size_t n_accepted() const { return saved_.size(); }
  size_t n_versions() const { return versions_.size(); }
  // Where the token begins that no parse could take, for the last piece that was refused; a byte of the text with it.
  uint32_t refused_at() const { return member_->parser.refused_at; }
  // Why everything is allowed from here on; empty while the grammar decides.
  const std::string& gave_up() const { return member_->parser.gave_up(); }

 private:
  // Calls `judge` on what was there `n_back` pieces ago, with `more` after it; then all is as it was.
  template <typename Judge>
  bool on_trial(std::string_view more, size_t n_back, Judge judge);
  void end_trial();
  Parser& parser() { return member_->parser; }

  std::shared_ptr<ParserPool> pool_;
  std::unique_ptr<ParserPool::Member> member_;
  std::string text_;
  Versions versions_;
  struct Saved {
    size_t length;
    Versions versions;
    uint32_t refused_at;
    bool had_given_up;
  };
  std::vector<Saved> saved_;
  bool gave_up_on_trial_ = false;
};

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_ACCEPTOR_H_
