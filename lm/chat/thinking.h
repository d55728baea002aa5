// Tells what a model thinks from what it answers, in text as it is generated.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace caldera {

/// A part of a text: thinking or answer.
struct ThinkingPart {
  bool thinking = false;
  std::string text;

  bool operator==(const ThinkingPart&) const = default;
};

/// Splits generated text at the marks that models put around their thinking: <think>...</think> (Qwen3,
/// DeepSeek-R1, SmolLM3 and most others), the channels of gpt-oss, [THINK] of Magistral, <|START_THINKING|>
/// of Command A, <seed:think> and <reasoning>. Marks that are no special tokens count at the beginning alone:
/// an answer may speak of them. The marks themselves and the blank lines next to them belong to neither part.
/// What may be the beginning of a mark is held back until more text comes. Not for use from several threads
/// at once.
class ThinkingSplitter {
 public:
  /// `prompt` is the text that the model continues: a template may have opened the thinking itself.
  explicit ThinkingSplitter(std::string_view prompt = {});

  /// Takes `piece` and returns what is certain now, in order; may be empty.
  std::vector<ThinkingPart> push(std::string_view piece);
  /// The rest, at the end of the text.
  std::vector<ThinkingPart> finish();

  /// Whether the text so far ends within thinking.
  bool thinking() const { return thinking_; }
  /// The mark that ends the present thinking; empty outside of it.
  std::string_view close() const { return thinking_ ? close_ : std::string_view(); }

  /// Whether marks have this token in them, and so whether it must not be left out of the text as other
  /// special tokens are: "<|channel|>", "</think>".
  static bool reads(std::string_view token);

 private:
  /// The first mark in what is held, or what may become one; `at` is the end where there is none.
  struct Found {
    std::size_t at;
    std::string_view mark;
    std::string_view close;  // of a mark that opens
  };
  Found next_mark() const;
  void take(std::vector<ThinkingPart>& parts, std::size_t count);

  std::string held_;  // not handed out yet
  bool thinking_ = false;
  bool answered_ = false;    // there has been some of the answer
  bool skip_blank_ = false;  // whitespace right behind a mark
  std::string_view close_;   // what ends the present thinking
};

}  // namespace caldera
