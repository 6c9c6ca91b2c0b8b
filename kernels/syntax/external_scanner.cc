#include "syntax/external_scanner.h"

#include <algorithm>

#include "syntax/utf8.h"

namespace treefill::syntax {
namespace {

constexpr size_t kMemoryBytes = 1024;       // what tree-sitter gives a scanner to write its memory to
constexpr size_t kBufferBytes = 16 * 1024;  // some write past that: not past this
constexpr int32_t kByteOrderMark = 0xFEFF;

// What a scanner reads the text through. It notes whether the end was seen.
class Reader : public TSLexer {
 public:
  Reader(std::string_view text, uint32_t position, bool is_whole)
      : TSLexer{}, text_(text), at_(position), end_(kUnmarked), is_whole_(is_whole) {
    advance = [](TSLexer* self, bool skip) { static_cast<Reader*>(self)->on_advance(skip); };
    mark_end = [](TSLexer* self) {
      auto* reader = static_cast<Reader*>(self);
      reader->end_ = reader->at_;
    };
    eof = [](const TSLexer* self) {
      const auto* reader = static_cast<const Reader*>(self);
      return reader->at_ >= reader->text_.size() || reader->is_cut_;
    };
    get_column = [](TSLexer* self) {
      auto* reader = static_cast<Reader*>(self);
      reader->asked_for_column_ = true;
      return reader->column();
    };
    is_at_included_range_start = [](const TSLexer* self) { return static_cast<const Reader*>(self)->at_ == 0; };
    log = ignore_log;
    look();
    if (at_ == 0 && lookahead == kByteOrderMark) on_advance(true);
  }

  bool saw_end() const { return saw_end_; }
  bool asked_for_column() const { return asked_for_column_; }
  uint64_t n_read() const { return n_read_; }
  uint32_t token_end() const { return end_ == kUnmarked ? at_ : end_; }

 private:
  static constexpr uint32_t kUnmarked = 0xFFFFFFFF;

  void on_advance(bool) {
    if (at_ >= text_.size() || is_cut_) return;
    n_read_ += length_;
    at_ += length_;
    look();
  }

  void look() {
    lookahead = 0;
    length_ = 0;
    if (at_ < text_.size()) {
      const Utf8Character character = utf8_at(text_, at_);
      is_cut_ = character.length == 0 && !is_whole_;
      if (is_cut_) {
        saw_end_ = true;
        return;
      }
      lookahead = character.code_point;
      length_ = std::max<uint8_t>(character.length, 1);
    } else {
      saw_end_ = true;
    }
  }

  uint32_t column() const {
    const size_t line_feed = at_ == 0 ? std::string_view::npos : text_.rfind('\n', at_ - 1);
    const auto line = text_.begin() + static_cast<ptrdiff_t>(line_feed == std::string_view::npos ? 0 : line_feed + 1);
    return static_cast<uint32_t>(std::count_if(line, text_.begin() + at_, [](char c) { return (c & 0xC0) != 0x80; }));
  }

  std::string_view text_;
  uint32_t at_;
  uint32_t end_;
  uint8_t length_ = 0;
  bool is_whole_;
  bool is_cut_ = false;  // the text ends inside the character that comes next
  bool saw_end_ = false;
  bool asked_for_column_ = false;
  uint64_t n_read_ = 0;
};

}  // namespace

ExternalScanner::ExternalScanner(const Language& language, const ScannerModel* model)
    : language_(language), model_(model), buffer_(kBufferBytes) {
  if (!language.has_scanner()) return;
  const ExternalScannerFunctions& scanner = language.scanner();
  if (scanner.create) payload_ = scanner.create();
  intern(std::string(buffer_.data(), scanner.serialize(payload_, buffer_.data())));
}

ExternalScanner::~ExternalScanner() {
  if (language_.has_scanner() && language_.scanner().destroy) language_.scanner().destroy(payload_);
}

ExternalScanner::Answer ExternalScanner::scan(const Question& question, std::string_view text) {
  const bool* valid = language_.valid_external_tokens(question.external_lex_state);
  const std::string& memory = memories_[question.state];
  Answer answer;
  if (model_) {
    ScannerModel::Question asked = model_question(question, text);
    asked.n_read = &answer.n_read;
    const ScannerModel::Answer found = model_->scan(asked);
    answer.is_undecided = found.is_undecided;
    answer.possible = found.possible;
    answer.may_decline = found.may_decline;
    answer.is_refused = found.is_refused;
    return with_token(answer, question, found.found, found.token, found.end, found.memory);
  }
  const Reply reply = ask(valid, memory, text, question.position, question.is_whole);
  answer.is_undecided = answer.may_decline = reply.is_undecided;
  answer.n_read = reply.n_read;
  for (uint32_t token = 0; reply.is_undecided && token < language_.external_token_count(); ++token)
    if (valid[token]) answer.possible |= ExternalSet{1} << token;
  return with_token(answer, question, reply.found, reply.token, reply.end, reply.memory);
}

ScannerModel::Rest ExternalScanner::rest(const Question& question, std::string_view text) const {
  ScannerModel::Rest rest{std::string(text.substr(question.position))};
  if (!model_) return rest;
  ScannerModel::Rest told;
  ScannerModel::Question asked = model_question(question, text);
  asked.rest = &told;
  const bool is_told = model_->scan(asked).is_undecided && !told.text.empty();
  return is_told ? told : rest;
}

ScannerModel::Question ExternalScanner::model_question(const Question& question, std::string_view text) const {
  return {language_.valid_external_tokens(question.external_lex_state),
          memories_[question.state],
          text,
          question.position,
          question.is_whole,
          question.is_strict,
          question.is_statement_start,
          question.is_outside_brackets};
}

ExternalScanner::Answer ExternalScanner::with_token(Answer answer, const Question& question, bool found, uint8_t token,
                                                    uint32_t end, const std::string& memory) {
  if (answer.is_undecided || !found) return answer;
  answer.found = true;
  answer.symbol = language_.scanner().symbol_map[token];
  answer.end = end;
  answer.is_overfull = memory.size() >= kMemoryBytes;
  answer.state = answer.is_overfull ? question.state : intern(memory);
  return answer;
}

ExternalScanner::Reply ExternalScanner::ask(const bool* valid, std::string_view memory, std::string_view text,
                                            uint32_t position, bool is_whole) {
  const ExternalScannerFunctions& scanner = language_.scanner();
  scanner.deserialize(payload_, memory.data(), static_cast<unsigned>(memory.size()));
  Reader reader(text, position, is_whole);
  Reply reply;
  reply.found = scanner.scan(payload_, &reader, valid);
  asks_for_column_ |= reader.asked_for_column();
  reply.n_read = reader.n_read();
  reply.is_undecided = reader.saw_end() && !is_whole;
  if (reply.is_undecided || !reply.found) return reply;
  reply.token = static_cast<uint8_t>(reader.result_symbol);
  reply.end = reader.token_end();
  reply.memory.assign(buffer_.data(), scanner.serialize(payload_, buffer_.data()));
  return reply;
}

ScannerState ExternalScanner::intern(std::string memory) {
  const auto [at, is_new] = numbers_.try_emplace(std::move(memory), static_cast<ScannerState>(memories_.size()));
  if (is_new) memories_.push_back(at->first);
  return at->second;
}

}  // namespace treefill::syntax
