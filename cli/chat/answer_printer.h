// AnswerPrinter: shows an answer while it is generated, the model's thinking set apart from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lm/chat/thinking.h"

namespace caldera::cli {

/// Takes the text of one answer, special tokens included, as they are how some models mark their thinking. On
/// a terminal thinking is dimmed; elsewhere only the answer is printed.
class AnswerPrinter {
 public:
  enum class Style : std::uint8_t { silent, plain, terminal };

  /// `prompt` is what the answer goes on from.
  AnswerPrinter(std::string_view prompt, Style style) : splitter_(prompt), style_(style) {}

  void push(std::string_view text) { take(splitter_.push(text)); }
  /// The text is complete: prints what was held back, and a line end.
  void finish();

  const std::string& answer() const { return answer_; }
  const std::string& thinking() const { return thinking_; }

 private:
  void take(const std::vector<ThinkingPart>& parts);
  void print(std::string_view text) const;

  ThinkingSplitter splitter_;
  Style style_;
  bool dimmed_ = false;
  std::string answer_;
  std::string thinking_;
};

}  // namespace caldera::cli
