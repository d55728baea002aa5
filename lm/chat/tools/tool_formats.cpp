#include "lm/chat/tools/tool_formats.h"

namespace caldera {

const std::vector<ToolFormat>& tool_formats() {
  // Sources: the chat templates of the families on the Hugging Face Hub.
  static const std::vector<ToolFormat> kFormats{
      {"qwen3-coder", "<function=", "<tool_call>", "</tool_call>", "xml", "arguments"},
      {"hermes", "<tool_call>", "<tool_call>", "</tool_call>", "call", "arguments"},
      {"mistral", "[TOOL_CALLS]", "[TOOL_CALLS]", "", "named", "arguments"},
      {"phi4", "<|tool_call|>", "<|tool_call|>", "<|/tool_call|>", "calls", "arguments"},
      {"llama3", "\"parameters\": dictionary of argument name", "", "", "call", "parameters"},
      {"llama3-tag", "<|python_tag|>", "<|python_tag|>", "", "call", "parameters"},
      // Whom a message is for stands behind its role, or behind its channel.
      {"gpt-oss",
       "<|start|>assistant to=",
       "to=functions.",
       "",
       "channel",
       "arguments",
       "<|channel|>commentary to=functions.",
       {"<|channel|>", "<|constrain|>", "<|message|>"}},
  };
  return kFormats;
}

std::optional<ToolFormat> find_tool_format(std::string_view chat_template) {
  for (const ToolFormat& format : tool_formats())
    if (chat_template.find(format.sign) != std::string_view::npos) return format;
  return std::nullopt;
}

}  // namespace caldera
