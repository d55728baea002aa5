// ToolCall: what a model asks a tool to do.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lm/chat/tools/tool_formats.h"

namespace caldera {

struct ToolCall {
  std::string name;
  std::string arguments;  ///< JSON text of an object

  bool operator==(const ToolCall&) const = default;
};

/// Reads what stands between the marks. No calls where it is not what the format says.
std::vector<ToolCall> parse_tool_calls(std::string_view text, const ToolFormat& format);

}  // namespace caldera
