#include "training/data/files/row_splitter.h"

#include <cstdint>

namespace caldera::detail {
namespace {

class Lines final : public RowSplitter {
 public:
  void feed(std::string_view piece, const std::function<void(std::size_t)>& end) override {
    for (std::size_t at = piece.find('\n'); at != piece.npos; at = piece.find('\n', at + 1)) end(at + 1);
  }
};

/// Reads fields as the reader of such files does (csv_rows.cpp): quotes within an unquoted field are text.
class Records final : public RowSplitter {
 public:
  explicit Records(char separator) : separator_(separator) {}

  void feed(std::string_view piece, const std::function<void(std::size_t)>& end) override {
    for (std::size_t i = 0; i < piece.size(); ++i) {
      const char c = piece[i];
      if (after_return_) {
        after_return_ = false;
        end(c == '\n' ? i + 1 : i);
        if (c == '\n') continue;
      }
      switch (state_) {
        case State::field_begin:
          state_ = c == '"' ? State::quoted : State::unquoted;
          if (c != '"') take(c, i, end);
          break;
        case State::unquoted:
          take(c, i, end);
          break;
        case State::quoted:
          if (c == '"') state_ = State::quote;
          break;
        case State::quote:  // the field's end, or the first of two
          state_ = c == '"' ? State::quoted : State::unquoted;
          if (c != '"') take(c, i, end);
          break;
      }
    }
  }

 private:
  enum class State : std::uint8_t { field_begin, unquoted, quoted, quote };

  void take(char c, std::size_t i, const std::function<void(std::size_t)>& end) {
    if (c == separator_) state_ = State::field_begin;
    if (c != '\n' && c != '\r') return;
    state_ = State::field_begin;
    if (c == '\n')
      end(i + 1);
    else
      after_return_ = true;
  }

  char separator_;
  State state_ = State::field_begin;
  bool after_return_ = false;  // a line end of two characters may be in two pieces
};

class Blocks final : public RowSplitter {
 public:
  void feed(std::string_view piece, const std::function<void(std::size_t)>& end) override {
    for (std::size_t i = 0; i < piece.size(); ++i, ++bytes_) {
      const bool begins_character = (static_cast<unsigned char>(piece[i]) & 0xC0U) != 0x80U;
      if (bytes_ >= kBlockBytes && begins_character && (after_line_ || bytes_ >= 2 * kBlockBytes)) {
        end(i);
        bytes_ = 0;
      }
      after_line_ = piece[i] == '\n';
    }
  }

 private:
  std::size_t bytes_ = 0;  // of the block so far
  bool after_line_ = false;
};

}  // namespace

std::unique_ptr<RowSplitter> split_lines() { return std::make_unique<Lines>(); }
std::unique_ptr<RowSplitter> split_records(char separator) { return std::make_unique<Records>(separator); }
std::unique_ptr<RowSplitter> split_blocks() { return std::make_unique<Blocks>(); }

}  // namespace caldera::detail
