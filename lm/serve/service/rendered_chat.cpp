#include "lm/serve/service/rendered_chat.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "lm/chat/template/base/chat_template_error.h"

namespace caldera::serve {
namespace {

// Stands behind the message that is gone on with, so that its end is found in what the template wrote. The
// blank shows whether the template takes blanks away from the end of messages.
constexpr std::string_view kMark = "MESSAGE_GOES_ON_HERE";

bool is_of_system(const Json& message) {
  const auto role = message.value("role", "");
  return role == "system" || role == "developer";
}

Json messages_of(const ServedModel& model, const ChatRequest& request) {
  Json messages = request.messages;
  if (!model.system_prompt.empty() && std::ranges::none_of(messages, is_of_system))
    messages.insert(messages.begin(), Json{{"role", "system"}, {"content", model.system_prompt}});
  if (request.continues) {
    Json& last = messages.back()["content"];
    last = last.get<std::string>() + std::string(kMark) + " ";
  }
  return messages;
}

/// Cuts the text off where the last message ends.
std::string cut_at_mark(std::string text) {
  const std::size_t at = text.rfind(kMark);
  if (at == std::string::npos)
    throw bad_request("the model's chat template does not show the last message: it cannot be gone on with",
                      "continue_final_message");
  const bool keeps_blanks = text.compare(at + kMark.size(), 1, " ") == 0;
  text.resize(at);
  if (!keeps_blanks) text.resize(text.find_last_not_of(" \t\r\n") + 1);
  return text;
}

}  // namespace

std::string render_chat(const ServedModel& model, const ChatRequest& request) {
  if (!model.chat) {
    throw bad_request("the model has no chat template; use /v1/completions", "messages",
                      "chat_template_missing");
  }
  ChatTemplateInput input;
  input.messages = messages_of(model, request);
  input.tools = request.tools;
  input.add_generation_prompt = request.add_generation_prompt;
  input.variables = Json::object();
  for (const auto& [name, token] : model.special_tokens) input.variables[name] = token;
  input.variables.update(request.variables);
  try {
    const bool with_tools = !request.tools.is_null() && model.chat_with_tools;
    std::string text = (with_tools ? *model.chat_with_tools : *model.chat).render(input).text;
    return request.continues ? cut_at_mark(std::move(text)) : text;
  } catch (const ChatTemplateError& error) {
    throw bad_request(fmt::format("the model's chat template refuses the conversation: {}", error.what()),
                      "messages");
  }
}

}  // namespace caldera::serve
