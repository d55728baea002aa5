// ToolCallParser: finds calls of tools in a text while it is generated.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lm/chat/tools/tool_call.h"
#include "lm/chat/tools/tool_call_stream.h"
#include "lm/chat/tools/tool_formats.h"

namespace caldera {

/// Divides a growing text into calls and what is said around them. Marks of a call are never shown; what
/// begins as a call and turns out not to be one is shown as it stands. Blanks around calls are dropped.
class ToolCallParser {
 public:
  struct Output {
    std::string content;
    std::vector<ToolCall> calls;
    std::vector<ToolCallPiece> pieces;  ///< of calls, as they are written; before those calls end
    /// Says of each call whether pieces have told it.
    std::vector<bool> told;
  };

  /// `streams`: pieces of calls are told. Then their form has to be right, as a grammar holds it.
  explicit ToolCallParser(const ToolFormat& format, bool streams = false) : format_(format) {
    if (streams) stream_.emplace(format);
  }

  Output push(std::string_view text);
  /// The rest, once the text has ended.
  Output finish();

  bool has_calls() const { return found_ > 0; }

 private:
  void read(Output& output, bool at_end);
  bool read_outside(Output& output, bool at_end);
  bool read_inside(Output& output, bool at_end);

  void add_calls(const std::vector<ToolCall>& calls, Output& output);

  ToolFormat format_;
  std::optional<ToolCallStream> stream_;
  std::string_view opened_;  // the mark that opened the calls that are read
  std::string held_;         // what is not given out yet; where inside_, from behind the opening mark on
  bool inside_ = false;
  bool decided_ = false;  // without an opening mark: it is known whether the text is calls
  std::size_t searched_ = 0;
  std::size_t found_ = 0;
};

}  // namespace caldera
