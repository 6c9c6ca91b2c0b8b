#include "syntax/vocabulary.h"

#include <algorithm>
#include <cctype>
#include <cwctype>
#include <map>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "syntax/utf8.h"

namespace treefill::syntax {
namespace {

constexpr size_t kMaxDepth = 255;
constexpr int32_t kInvalid = -1;
constexpr int32_t kByteOrderMark = 0xFEFF;

// A piece of a token: a whole character, or one that the token ends inside of, or a byte that is no UTF-8.
struct Piece {
  int32_t first;
  int32_t last;
  std::string_view bytes;
};

template <typename Visit>
void for_each_piece(std::string_view token, Visit visit) {
  for (size_t at = 0; at < token.size();) {
    const Utf8Character character = utf8_at(token, at);
    if (character.length == 0) {
      const CodePoints some = unfinished_at(token, at);
      visit(Piece{some.first, some.last, token.substr(at)});
      return;
    }
    visit(Piece{character.code_point, character.code_point, token.substr(at, character.length)});
    at += character.length;
  }
}

// What scanners, which ask the C library, may tell apart.
uint32_t library_kinds(int32_t first, int32_t last) {
  if (first != last) return first <= kByteOrderMark && kByteOrderMark <= last ? 1u << 31 | 1 : 1u << 31;
  const auto character = static_cast<wint_t>(first);
  const bool kinds[] = {std::iswspace(character) != 0,      std::iswalpha(character) != 0,
                        std::iswalnum(character) != 0,      std::iswupper(character) != 0,
                        std::iswlower(character) != 0,      std::iswpunct(character) != 0,
                        first == 0x2028 || first == 0x2029, first == kByteOrderMark};
  uint32_t packed = 0;
  for (bool kind : kinds) packed = packed << 1 | kind;
  return packed;
}

// Tells the pieces apart that the lexer does.
void refine(const LexerTables& lexer, const std::vector<std::pair<int32_t, int32_t>>& pieces,
            std::vector<uint32_t>& class_of) {
  std::vector<uint64_t> outcomes(pieces.size());
  for (size_t state = 0; state < lexer.n_states(); ++state) {
    if (lexer.state(static_cast<LexState>(state)).is_final) continue;
    lexer.outcomes(static_cast<LexState>(state), pieces, class_of, outcomes);
    if (std::all_of(outcomes.begin(), outcomes.end(), [](uint64_t outcome) { return outcome == 0; })) continue;
    std::map<std::pair<uint32_t, uint64_t>, uint32_t> numbers;
    for (size_t i = 0; i < pieces.size(); ++i)
      class_of[i] =
          numbers.try_emplace({class_of[i], outcomes[i]}, static_cast<uint32_t>(numbers.size())).first->second;
  }
}

constexpr std::array<uint64_t, kLetters> kinds() {
  std::array<uint64_t, kLetters> kinds{};
  uint32_t next = 4;
  for (uint32_t letter = 0; letter < kLetters; ++letter) {
    const auto c = static_cast<char>(letter);
    uint32_t bit = 0;  // other controls
    if (c >= 'a' && c <= 'z')
      bit = 1;
    else if (c >= 'A' && c <= 'Z')
      bit = 2;
    else if (c >= '0' && c <= '9')
      bit = 3;
    else if (letter >= ' ' || c == '\t' || c == '\n' || c == '\r')
      bit = next < 63 ? next++ : 63;
    kinds[letter] = uint64_t{1} << bit;
  }
  return kinds;
}

TokenTrie make_trie(std::vector<std::pair<std::basic_string<Letter>, uint32_t>> tokens) {
  std::sort(tokens.begin(), tokens.end());
  TokenTrie trie;
  std::vector<uint32_t> open;  // the nodes on the way to the last one
  const std::basic_string<Letter>* last = nullptr;
  const auto close = [&](size_t depth) {
    while (open.size() > depth) {
      trie.nodes[open.back()].end = static_cast<uint32_t>(trie.nodes.size());
      trie.nodes[open.back()].end_token = static_cast<uint32_t>(trie.ids.size());
      const uint64_t below = trie.nodes[open.back()].below | GrammarVocabulary::kind_of(trie.nodes[open.back()].letter);
      open.pop_back();
      if (!open.empty()) trie.nodes[open.back()].below |= below;
    }
  };
  for (const auto& [letters, id] : tokens) {
    size_t n_shared = 0;
    if (last)
      while (n_shared < last->size() && n_shared < letters.size() && (*last)[n_shared] == letters[n_shared]) ++n_shared;
    if (!last || letters != *last) {
      close(n_shared);
      for (size_t depth = n_shared; depth < letters.size(); ++depth) {
        open.push_back(static_cast<uint32_t>(trie.nodes.size()));
        trie.nodes.push_back(
            {0, 0, static_cast<uint32_t>(trie.ids.size()), 0, letters[depth], static_cast<uint8_t>(depth)});
      }
    }
    trie.ids.push_back(id);
    last = &letters;
  }
  close(0);
  const auto n_tokens = static_cast<uint32_t>(trie.ids.size());
  trie.nodes.push_back({0, static_cast<uint32_t>(trie.nodes.size()), n_tokens, n_tokens, 0, 0});
  return trie;
}

}  // namespace

Vocabulary::Vocabulary(std::vector<std::string> token_bytes, size_t n) : tokens(std::move(token_bytes)), n_logits(n) {
  if (tokens.size() > n_logits)
    throw std::invalid_argument("The vocabulary has " + std::to_string(tokens.size()) + " tokens and only " +
                                std::to_string(n_logits) + " logits.");
  for (const std::string& token : tokens)
    if (token.size() > kMaxDepth)
      throw std::invalid_argument("A token has " + std::to_string(token.size()) + " bytes; " +
                                  std::to_string(kMaxDepth) + " are the most.");
}

Letters::Letters(const Grammar& grammar, const Vocabulary& vocabulary) {
  for (int letter = 0; letter < 128; ++letter) spellings_.emplace_back(1, static_cast<char>(letter));
  std::map<std::pair<int32_t, int32_t>, std::string_view> found;
  for (const std::string& token : vocabulary.tokens)
    for_each_piece(token, [&](const Piece& piece) {
      if (piece.first >= 128 || piece.first != piece.last) found.try_emplace({piece.first, piece.last}, piece.bytes);
    });
  std::vector<std::pair<int32_t, int32_t>> pieces;
  std::vector<std::string_view> bytes;
  for (const auto& [range, spelled] : found) {
    pieces.push_back(range);
    bytes.push_back(spelled);
  }
  std::vector<uint32_t> class_of(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) class_of[i] = library_kinds(pieces[i].first, pieces[i].second);
  refine(grammar.lexer, pieces, class_of);
  if (grammar.keywords) refine(*grammar.keywords, pieces, class_of);

  const auto new_letter = [this](std::string spelling) {
    if (n_letters_ == kLetters) throw std::length_error("The grammar tells too many kinds of characters apart.");
    spellings_.push_back(std::move(spelling));
    return static_cast<Letter>(n_letters_++);
  };
  invalid_ = new_letter("\x80");
  std::map<uint32_t, Letter> letters;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto known = letters.find(class_of[i]);
    const Letter letter = known != letters.end()
                              ? known->second
                              : letters.emplace(class_of[i], new_letter(std::string(bytes[i]))).first->second;
    kinds_.push_back({pieces[i].first, pieces[i].second, letter});
  }
}

std::basic_string<Letter> Letters::spell(std::string_view token) const {
  std::basic_string<Letter> letters;
  for_each_piece(token, [&](const Piece& piece) { letters.push_back(letter_of(piece.first, piece.last)); });
  return letters;
}

Letter Letters::letter_of(int32_t first, int32_t last) const {
  if (first == kInvalid) return invalid_;
  if (first == last && first < 128) return static_cast<Letter>(first);
  const auto at = std::lower_bound(kinds_.begin(), kinds_.end(), std::pair(first, last),
                                   [](const Kind& kind, const std::pair<int32_t, int32_t>& wanted) {
                                     return std::pair(kind.first, kind.last) < wanted;
                                   });
  return at->letter;
}

const std::array<uint64_t, kLetters> GrammarVocabulary::kKinds = kinds();

GrammarVocabulary::GrammarVocabulary(std::shared_ptr<const Grammar> grammar,
                                     std::shared_ptr<const Vocabulary> vocabulary)
    : grammar_(std::move(grammar)), vocabulary_(std::move(vocabulary)), letters_(*grammar_, *vocabulary_) {
  std::vector<std::pair<std::basic_string<Letter>, uint32_t>> without, with;
  for (size_t id = 0; id < vocabulary_->tokens.size(); ++id) {
    const std::string& token = vocabulary_->tokens[id];
    if (token.empty()) continue;
    auto& half = token.find('\n') == std::string::npos ? without : with;
    half.emplace_back(letters_.spell(token), static_cast<uint32_t>(id));
  }
  without_line_feed_ = make_trie(std::move(without));
  with_line_feed_ = make_trie(std::move(with));
  for (TokenTrie* trie : {&without_line_feed_, &with_line_feed_}) {
    trie->words.resize(vocabulary_->n_words());
    for (uint32_t id : trie->ids) trie->words[id / 32] |= uint32_t{1} << (id % 32);
  }
}

}  // namespace treefill::syntax
