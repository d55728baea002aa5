#include "training/data/forms/chat_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "engine/base/error.h"

namespace caldera {

using nlohmann::ordered_json;

namespace {

bool is_answer(const ordered_json& message) {
  return message.is_object() && message.value("role", "") == "assistant";
}

/// Whether a mark of a message says that it is learned.
bool is_learned(const ordered_json& mark, const char* name) {
  if (mark.is_boolean()) return mark.get<bool>();
  if (mark.is_number() && (mark == 0 || mark == 1)) return mark == 1;
  throw ValueError(fmt::format("a message's \"{}\" must be true or false, or 1 or 0", name));
}

/// Takes "train" (of axolotl's data) and "weight" (of OpenAI's) from the messages, which no template knows.
/// Returns for each answer whether it is learned: it is where nothing says otherwise.
std::vector<bool> take_marks(ordered_json& messages) {
  std::vector<bool> learns;
  for (ordered_json& message : messages) {
    bool learned = true;
    for (const char* name : {"train", "weight"}) {
      if (!message.is_object() || !message.contains(name)) continue;
      learned = learned && (message[name].is_null() || is_learned(message[name], name));
      if (!is_answer(message) && !message[name].is_null() && is_learned(message[name], name))
        throw ValueError(
            fmt::format("\"{}\" marks a message of '{}': only what the assistant says is learned "
                        "(--loss-on all takes everything)",
                        name, message.value("role", "")));
      message.erase(name);
    }
    if (is_answer(message)) learns.push_back(learned);
  }
  return learns;
}

}  // namespace

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

Example ChatFormat::conversation(const ordered_json& conversation, const ordered_json& tools) {
  ordered_json messages = conversation;
  const std::vector<bool> learns = take_marks(messages);
  RenderedChat whole = render(messages, tools, false);
  if (learns.empty()) throw ValueError("the conversation holds no message of the assistant");
  Example example{.prompt = {}, .text = std::move(whole.text), .rendered = true};
  std::vector<TextSpan>& learned = example.learned.emplace();
  if (!whole.generation.empty()) {
    const bool all = std::ranges::find(learns, false) == learns.end();
    if (!all && whole.generation.size() != learns.size())
      throw ValueError(
          fmt::format("\"train\" or \"weight\" marks one of {} answers, and the chat template has {} "
                      "{{% generation %}} blocks: which is whose is unknown",
                      learns.size(), whole.generation.size()));
    for (std::size_t i = 0; i < whole.generation.size(); ++i)
      if (all || learns[i]) learned.push_back({whole.generation[i].begin, whole.generation[i].end});
    return example;
  }

  ordered_json before = ordered_json::array();
  std::size_t answer = 0;
  for (const ordered_json& message : messages) {
    const bool counts = is_answer(message) && learns[answer++];
    const std::size_t begin = counts ? prompt_end(example.text, before, tools) : 0;
    before.push_back(message);
    if (!counts) continue;
    const std::string until = render(before, tools, false).text;
    // What a template writes behind the last message only is not the assistant's.
    const bool last = before.size() == messages.size();
    if (!last && !example.text.starts_with(until))
      throw ValueError(
          "the chat template writes an answer differently once the conversation goes on; use a "
          "template with {% generation %} blocks");
    learned.push_back({begin, last ? example.text.size() : until.size()});
  }
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
