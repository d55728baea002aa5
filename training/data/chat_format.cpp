#include "training/data/chat_format.h"

#include <fmt/format.h>

#include "engine/base/error.h"

namespace caldera {

using nlohmann::ordered_json;

RenderedChat ChatFormat::render(const ordered_json& messages, const ordered_json& tools,
                                bool add_generation_prompt) {
  if (!template_) template_.emplace(model_.source());
  ChatTemplateInput input;
  model_.add_special_tokens(input);
  input.messages = messages;
  input.tools = tools;
  input.add_generation_prompt = add_generation_prompt;
  return template_->render(input);
}

std::size_t ChatFormat::prompt_end(const std::string& whole, const ordered_json& messages,
                                   const ordered_json& tools) {
  const std::string prompt = render(messages, tools, true).text;
  if (!whole.starts_with(prompt))
    throw ValueError(
        "the chat template writes the messages before an answer differently once the answer is there, so "
        "that the answer's part of the text is unknown; use a template with {% generation %} blocks, or "
        "{\"prompt\", \"completion\"} texts");
  return prompt.size();
}

Example ChatFormat::conversation(const ordered_json& messages, const ordered_json& tools) {
  RenderedChat whole = render(messages, tools, false);
  Example example{.prompt = {}, .text = std::move(whole.text), .rendered = true};
  for (const ChatSpan& span : whole.generation) example.learned.push_back({span.begin, span.end});
  if (!example.learned.empty()) return example;

  ordered_json before = ordered_json::array();
  for (const ordered_json& message : messages) {
    const bool answers = message.is_object() && message.value("role", "") == "assistant";
    const std::size_t begin = answers ? prompt_end(example.text, before, tools) : 0;
    before.push_back(message);
    if (!answers) continue;
    const std::string until = render(before, tools, false).text;
    // What a template writes behind the last message only is not the assistant's.
    const bool last = before.size() == messages.size();
    if (!last && !example.text.starts_with(until))
      throw ValueError(
          "the chat template writes an answer differently once the conversation goes on; use a "
          "template with {% generation %} blocks");
    example.learned.push_back({begin, last ? example.text.size() : until.size()});
  }
  if (example.learned.empty()) throw ValueError("the conversation holds no message of the assistant");
  return example;
}

Example ChatFormat::answer(const ordered_json& messages, const ordered_json& answer,
                           const ordered_json& tools) {
  ordered_json whole = messages;
  for (const ordered_json& message : answer) whole.push_back(message);
  const std::string text = render(whole, tools, false).text;
  const std::size_t end = prompt_end(text, messages, tools);
  return {.prompt = text.substr(0, end), .text = text.substr(end), .rendered = true};
}

}  // namespace caldera
