// Reads a regular expression from left to right. Private to lm/.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "lm/base/unicode/utf8.h"

namespace caldera::detail {

/// Thrown for an expression that cannot be translated: the end of a sentence about it.
struct ExpressionProblem {
  std::string text;
};

class ExpressionReader {
 public:
  explicit ExpressionReader(std::string_view text) : text_(text) {}

  bool done() const { return at_ == text_.size(); }
  char peek() const { return text_[at_]; }
  bool starts_with(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  std::size_t position() const { return at_; }
  void seek(std::size_t position) { at_ = position; }

  char take() {
    if (done()) throw ExpressionProblem{"ends too early"};
    return text_[at_++];
  }
  /// A whole character of UTF-8.
  std::string_view take_character() {
    const std::size_t bytes = utf8_character(text_.substr(at_));
    if (bytes == 0) throw ExpressionProblem{"is not UTF-8"};
    at_ += bytes;
    return text_.substr(at_ - bytes, bytes);
  }
  /// Returns what stands before the next `end`, which is taken too.
  std::string_view take_until(std::string_view end) {
    const auto found = text_.find(end, at_);
    if (found == std::string_view::npos) throw ExpressionProblem{"ends too early"};
    const auto taken = text_.substr(at_, found - at_);
    at_ = found + end.size();
    return taken;
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace caldera::detail
