// ToolPayload: what stands between the marks of a call, read and written. Private to lm/.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lm/chat/tools/tool_call.h"
#include "lm/chat/tools/tool_formats.h"

namespace caldera::detail {

/// Holds what stands around the arguments of a call, which are JSON.
struct ToolCallFrame {
  std::string before;
  std::string after;
};

/// Says how calls are written behind the mark that opens them; blanks may be more or fewer.
struct ToolCallsForm {
  std::string before;   ///< of all calls
  std::string head;     ///< in front of a function's name
  std::string middle;   ///< between the name and its arguments, which are JSON
  std::string tail;     ///< behind the arguments
  std::string between;  ///< of two calls; empty: there is one
  std::string after;    ///< of all calls
  bool quoted = true;   ///< names are strings of JSON
};

/// Describes one kind of payload: a row of the table in tool_payloads.cpp.
struct ToolPayload {
  std::string_view name;  ///< ToolFormat::payload
  /// Reads a trimmed text. No calls where it is not what the format says.
  std::vector<ToolCall> (*read)(std::string_view text, const ToolFormat& format);
  /// Writes the frame of one call of a function, whose name is given as JSON; none where the arguments are
  /// not written as JSON, so that no grammar demands a call.
  std::optional<ToolCallFrame> (*frame)(std::string_view name, const ToolFormat& format);
  /// Lists the forms that calls may have; none where the arguments are not written as JSON.
  std::vector<ToolCallsForm> (*forms)(const ToolFormat& format);
};

/// Finds a format's payload. Throws ValueError for a name that none has.
const ToolPayload& payload_of(const ToolFormat& format);

}  // namespace caldera::detail
