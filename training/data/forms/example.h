// Examples: what a line of a data file says, before it becomes tokens.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caldera {

/// Bytes of a text.
struct TextSpan {
  std::size_t begin = 0;
  std::size_t end = 0;  ///< one behind the last

  bool operator==(const TextSpan&) const = default;
};

/// Says what an example is, so that an objective gets what it trains on.
enum class ExampleKind : std::uint8_t {
  text,        ///< a text or a conversation, with or without a prompt
  preference,  ///< an answer that was preferred to another one
  similar,     ///< two texts that belong together
  prompt,      ///< a prompt that the model is to answer
};

/// Names examples of a kind and their fields, for messages: "pairs ({...})".
std::string_view description_of(ExampleKind kind);

/// One example of a data file. The model sees `prompt` followed by `text`; `prompt` may be empty.
struct Example {
  std::string prompt;
  std::string text;
  /// Set in a pair: the text to which `text` was preferred as the answer to `prompt`; of similar texts the
  /// other one.
  std::optional<std::string> rejected = {};
  /// The parts of `text` that the model is to produce, in order; nothing: all of it. (An empty list: none of
  /// it.)
  std::optional<std::vector<TextSpan>> learned = {};
  /// From a chat template: the special tokens are in the text, and none is added.
  bool rendered = false;
  ExampleKind kind = ExampleKind::text;
  /// Holds the label of the row: 1 for a good answer and 0 for a bad one, or the number of a class.
  std::optional<double> label = {};
  /// Holds the row of a prompt, a JSON object, for the program that judges answers.
  std::string row = {};
};

/// The examples of one file.
struct ExampleSet {
  /// From a .txt: one long document, to be cut into windows. Otherwise each example is a sequence of its own.
  bool plain_text = false;
  std::vector<Example> examples;
  /// Passes over the file that an epoch makes: 2 takes every example twice, 0.25 a fresh quarter of them.
  double weight = 1;
  std::int64_t empty_rows = 0;     ///< left out: nothing to learn in them
  std::int64_t bad_rows = 0;       ///< left out on request: they could not be read
  std::string first_bad_row = {};  ///< what the error of the first of those said
};

}  // namespace caldera
