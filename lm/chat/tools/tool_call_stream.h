// ToolCallStream: tells calls of tools while they are being written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lm/chat/tools/tool_formats.h"

namespace caldera {

/// A piece of a call: its name where it begins, then its arguments as they are written.
struct ToolCallPiece {
  bool begins = false;
  std::string name;       ///< of one that begins
  std::string arguments;  ///< some more of their JSON

  bool operator==(const ToolCallPiece&) const = default;
};

/// Reads calls whose form is known to be right, as a grammar holds them: objects with a name and arguments,
/// one or a list of them, NAME[ARGS]{...}, or NAME...<|message|>{...}. What is written otherwise is not told
/// at all.
class ToolCallStream {
 public:
  explicit ToolCallStream(const ToolFormat& format) : format_(format) {}

  /// Takes all of the text behind the mark that opens calls, which grows from call to call. Returns what it
  /// has not told.
  std::vector<ToolCallPiece> read(std::string_view text);
  /// Counts the calls that have begun since restart().
  std::size_t begun() const { return begun_; }
  /// Begins with another mark.
  void restart();

 private:
  enum class State : std::uint8_t { head, arguments, lost };

  bool read_head(std::string_view text, std::vector<ToolCallPiece>& pieces);
  bool read_arguments(std::string_view text, std::vector<ToolCallPiece>& pieces);

  ToolFormat format_;
  State state_ = State::head;
  std::size_t at_ = 0;  // read up to here
  std::size_t begun_ = 0;
  int depth_ = 0;  // of the arguments' brackets
  bool in_text_ = false, escaped_ = false;
};

}  // namespace caldera
