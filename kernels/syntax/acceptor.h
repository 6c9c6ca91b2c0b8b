// Decides whether a text is the beginning of something that a grammar accepts, while it grows and shrinks.

#ifndef TREEFILL_SYNTAX_ACCEPTOR_H_
#define TREEFILL_SYNTAX_ACCEPTOR_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syntax/mask_walk.h"
#include "syntax/parser.h"
#include "syntax/vocabulary.h"

namespace treefill::syntax {

// One text that grows, and may shrink again. One thread at a time.
class Acceptor {
 public:
  explicit Acceptor(std::shared_ptr<const Grammar> grammar);

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
  // Sets the bits of the tokens that may come next, in a mask that is all 0: those that `allows` allows. False where
  // the grammar gave up: then the bits are those of all tokens.
  bool fill_mask(const std::shared_ptr<const GrammarVocabulary>& vocabulary, std::span<uint32_t> words);
  // How much the last mask took.
  MaskWalk::Counts mask_counts() const { return walk_ ? walk_->counts() : MaskWalk::Counts{}; }
  // The terminals that may come next, where a token has just ended.
  std::vector<Symbol> expected() { return parser_.expected(versions_); }

  const Grammar& grammar() const { return *parser_.grammar(); }
  bool is_alive() const { return !versions_.empty(); }
  size_t n_accepted() const { return saved_.size(); }
  size_t n_versions() const { return versions_.size(); }
  // Where the token begins that no parse could take, for the last piece that was refused; a byte of the text with it.
  uint32_t refused_at() const { return parser_.refused_at; }
  // Why everything is allowed from here on; empty while the grammar decides.
  const std::string& gave_up() const { return parser_.gave_up(); }

 private:
  // Calls `judge` on what was there `n_back` pieces ago, with `more` after it; then all is as it was.
  template <typename Judge>
  bool on_trial(std::string_view more, size_t n_back, Judge judge);
  void end_trial();

  Parser parser_;
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
  std::unique_ptr<MaskWalk> walk_;  // made for the first mask
  std::shared_ptr<const GrammarVocabulary> walked_;
};

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_ACCEPTOR_H_
