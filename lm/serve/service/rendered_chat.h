// Renders a request's conversation for the model.
#pragma once

#include <string>

#include "lm/serve/protocol/chat_request.h"
#include "lm/serve/service/served_model.h"

namespace caldera::serve {

/// Returns the conversation as the model's template writes it; one that has no message of the system's gets
/// the server's, where it has any. Where the answer is to go on with the last message, the text ends with
/// that message's: as transformers' `continue_final_message` has it. Throws ApiError 400 where the model has
/// no template, or that refuses the conversation.
std::string render_chat(const ServedModel& model, const ChatRequest& request);

}  // namespace caldera::serve
