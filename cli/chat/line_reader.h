// LineReader: what the user types, with editing and a history where there is a terminal.
#pragma once

#include <optional>
#include <string>

namespace caldera::cli {

/// Reads lines from standard input. On a terminal they can be edited and earlier ones come back with the
/// arrow keys, where the program was built with libedit; what is pasted there is one text, whatever lines it
/// has, until it is sent with the key for it. One thread at a time.
class LineReader {
 public:
  LineReader();

  /// The next line without its end, in UTF-8; nothing at the end of the input. `prompt` is shown on a
  /// terminal. An interrupt (Ctrl-C) gives an empty line.
  std::optional<std::string> read(const std::string& prompt);

  /// Whether somebody sits there: standard input and output are terminals.
  bool interactive() const { return interactive_; }

 private:
  bool interactive_;
  bool marks_pastes_ = false;
};

}  // namespace caldera::cli
