// StopText: ends a growing text at the first of some strings, and shows nothing of them before.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caldera {

/// Finds stop strings in a text that comes piece by piece. What may be the beginning of a stop string is held
/// back until it is known not to be one. Where several stop strings occur, the one that is complete first
/// ends the text (of those the longest), so that it does not matter how the text is divided into pieces.
class StopText {
 public:
  /// Empty strings are passed over.
  explicit StopText(std::vector<std::string> stops);

  /// Takes more of the text and returns what may be shown; nothing more once stopped() is true. Where pieces
  /// and stop strings are UTF-8, so is what is returned.
  std::string push(std::string_view piece);
  /// Returns what is held back: call it where the text has ended otherwise.
  std::string finish();

  /// Whether a stop string has come.
  bool stopped() const { return found_.has_value(); }
  /// The stop string that has come.
  const std::optional<std::string>& found() const { return found_; }

 private:
  std::vector<std::string> stops_;  // the longest first
  std::string held_;
  std::optional<std::string> found_;
};

}  // namespace caldera
