// ToolFormat: how a family of models writes calls of tools into its text.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caldera {

/// Characters that may stand around calls and between them.
inline constexpr std::string_view kToolBlanks = " \t\r\n";

/// Says how calls are written: a row of the table in tool_formats.cpp.
struct ToolFormat {
  std::string_view name;
  std::string_view sign;   ///< a chat template that has this text writes calls so
  std::string_view open;   ///< begins calls; empty: the whole text is calls, where it begins with {
  std::string_view close;  ///< ends them; empty: the end of the text
  /// Names what stands between the marks: "call", objects with a name and arguments; "calls", a list of them;
  /// "named", NAME[ARGS]{arguments}; "xml", <function=NAME><parameter=KEY>VALUE</parameter>...</function>;
  /// "channel", NAME, a channel and the kind of content, <|message|>{arguments}.
  std::string_view payload;
  std::string_view arguments;                ///< the name of the arguments: "arguments" or "parameters"
  std::string_view longer_open{};            ///< `open` with what may stand in front of it and is no content
  std::array<std::string_view, 3> tokens{};  ///< special tokens within calls
};

/// The formats that are known, those with the more particular signs first.
const std::vector<ToolFormat>& tool_formats();

/// The format that a chat template teaches, if it is a known one.
std::optional<ToolFormat> find_tool_format(std::string_view chat_template);

}  // namespace caldera
