// Examples: what a line of a data file says, before it becomes tokens.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace caldera {

/// Bytes of a text.
struct TextSpan {
  std::size_t begin = 0;
  std::size_t end = 0;  ///< one behind the last

  bool operator==(const TextSpan&) const = default;
};

/// One example of a data file. The model sees `prompt` followed by `text`; `prompt` may be empty.
struct Example {
  std::string prompt;
  std::string text;
  /// Set in a pair: the text to which `text` was preferred as the answer to `prompt`.
  std::optional<std::string> rejected = {};
  /// The parts of `text` that the model is to produce, in order; empty: all of it.
  std::vector<TextSpan> learned = {};
  /// From a chat template: the special tokens are in the text, and none is added.
  bool rendered = false;
};

/// The examples of one file.
struct ExampleSet {
  /// From a .txt: one long document, to be cut into windows. Otherwise each example is a sequence of its own.
  bool plain_text = false;
  std::vector<Example> examples;
};

}  // namespace caldera
