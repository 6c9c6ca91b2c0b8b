// A model's vocabulary as a grammar reads it: tokens that no lexer tells apart are one.
//
// The characters beyond ASCII that occur in the vocabulary fall into a few classes: in a class are those that every
// state of the grammar's lexers treats alike. So a token is a sequence of symbols, ASCII characters and classes, and
// the tokens make a trie over them that has a third fewer nodes than one over bytes.

#ifndef TREEFILL_SYNTAX_VOCABULARY_H_
#define TREEFILL_SYNTAX_VOCABULARY_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "syntax/parser.h"

namespace treefill::syntax {

// The tokens' bytes, by id; those that are never written (control tokens, unused ids) are empty.
struct Vocabulary {
  Vocabulary(std::vector<std::string> token_bytes, size_t n_logits);

  size_t n_words() const { return (n_logits + 31) / 32; }

  std::vector<std::string> tokens;
  size_t n_logits;  // at least as many as tokens: a mask has a bit for each
};

// An ASCII character, or the number of a class from 128 on.
using Letter = uint8_t;
constexpr size_t kLetters = 256;

// What a letter is written as where a text is needed: any of its class will do.
class Letters {
 public:
  // Throws std::length_error where there are more classes than letters.
  Letters(const Grammar& grammar, const Vocabulary& vocabulary);

  const std::string& spelling(Letter letter) const { return spellings_[letter]; }
  size_t n_letters() const { return n_letters_; }
  // The token as letters. What is no UTF-8 is a letter, and so is a character that the token ends inside of.
  std::basic_string<Letter> spell(std::string_view token) const;

 private:
  struct Kind {
    int32_t first;  // of the code points that it may become; a whole character is one
    int32_t last;
    Letter letter;
  };
  Letter letter_of(int32_t first, int32_t last) const;

  std::vector<Kind> kinds_;  // in order
  std::vector<std::string> spellings_;
  size_t n_letters_ = 128;
  Letter invalid_ = 0;
};

// Tokens in the order of a walk: a node comes before what is below it.
struct TokenTrie {
  struct Node {
    uint64_t below;        // kinds of letters that occur below
    uint32_t end;          // the next node that is not below this one
    uint32_t first_token;  // of `ids`: its own are up to the next node's
    uint32_t end_token;    // those below it are up to here
    Letter letter;
    uint8_t depth;  // 0 for the first letter
  };
  std::vector<Node> nodes;  // and one behind the last
  std::vector<uint32_t> ids;
  std::vector<uint32_t> words;  // the same as a mask
};

// One vocabulary for one grammar. Shared by walks, from any thread.
class GrammarVocabulary {
 public:
  GrammarVocabulary(std::shared_ptr<const Grammar> grammar, std::shared_ptr<const Vocabulary> vocabulary);

  // Kinds of letters, 64 at most: punctuation by itself, the letters of a case together.
  static uint64_t kind_of(Letter letter) { return kKinds[letter]; }

  const Vocabulary& vocabulary() const { return *vocabulary_; }
  const std::shared_ptr<const Grammar>& grammar() const { return grammar_; }
  const Letters& letters() const { return letters_; }
  const TokenTrie& without_line_feed() const { return without_line_feed_; }
  const TokenTrie& with_line_feed() const { return with_line_feed_; }

 private:
  static const std::array<uint64_t, kLetters> kKinds;

  std::shared_ptr<const Grammar> grammar_;
  std::shared_ptr<const Vocabulary> vocabulary_;
  Letters letters_;
  TokenTrie without_line_feed_;
  TokenTrie with_line_feed_;
};

}  // namespace treefill::syntax

#endif  // TREEFILL_SYNTAX_VOCABULARY_H_
