// ChatRequest: a request of /v1/chat/completions.
#pragma once

#include <string>

#include "lm/serve/protocol/options.h"

namespace caldera::serve {

enum class ToolChoice : std::uint8_t { none, automatic, required, named };

struct ChatRequest {
  CompletionOptions options;
  /// Holds them as chat templates take them: contents are texts, arguments of tool calls are objects where
  /// they parse.
  Json messages = Json::array();
  Json tools;  ///< null where there are none or none may be called
  ToolChoice tool_choice = ToolChoice::none;
  std::string tool_name;            ///< of ToolChoice::named
  bool parallel_calls = true;       ///< more calls than one may be made in a turn
  Json variables = Json::object();  ///< "chat_template_kwargs", for the template
  bool add_generation_prompt = true;
  bool continues = false;        ///< "continue_final_message": the answer goes on with the last message
  bool drops_old_turns = false;  ///< "truncation": where the context has no room for all, old turns go
};

/// Says whether a message's content is a text of more than blanks.
bool has_text(const Json& content);

/// Throws ApiError 400.
ChatRequest read_chat_request(const Json& body, const ServeLimits& limits);

}  // namespace caldera::serve
