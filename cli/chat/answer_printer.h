// AnswerPrinter: shows an answer while it is generated, the model's thinking set apart from it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lm/chat/thinking.h"
#include "lm/tokenizers/stream_decoder.h"

namespace caldera::cli {

/// Takes the tokens of one answer. On a terminal thinking is dimmed; elsewhere only the answer is printed.
class AnswerPrinter {
 public:
  enum class Style : std::uint8_t { silent, plain, terminal };

  /// `prompt` and its ids are what the answer goes on from.
  AnswerPrinter(const Tokenizer& tokenizer, std::string_view prompt, std::span<const std::int32_t> ids,
                Style style);

  void push(std::int32_t id);
  /// The text is complete: prints what was held back, and a line end.
  void finish();

  const std::string& answer() const { return answer_; }
  const std::string& thinking() const { return thinking_; }

 private:
  void take(const std::vector<ThinkingPart>& parts);
  void print(std::string_view text) const;

  StreamDecoder decoder_;
  ThinkingSplitter splitter_;
  Style style_;
  bool dimmed_ = false;
  std::string answer_;
  std::string thinking_;
};

}  // namespace caldera::cli
