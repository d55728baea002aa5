#include "lm/chat/conversation.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/base/json_file.h"
#include "lm/chat/turns.h"

namespace caldera {

using nlohmann::ordered_json;

namespace {

bool is_by(const ordered_json& message, const char* role) { return message.value("role", "") == role; }

/// Takes `name` out of `object`; null where it is not there.
ordered_json take(ordered_json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end()) return {};
  ordered_json value = std::move(*it);
  object.erase(it);
  return value;
}

}  // namespace

Conversation::Conversation(const std::string& source, const ModelChatTemplates& model, ordered_json variables)
    : template_(source) {
  special_.variables = std::move(variables);
  model.add_special_tokens(special_);
  special_.add_generation_prompt = true;
}

void Conversation::restart(const std::string& system) {
  messages_ = ordered_json::array();
  if (!system.empty()) messages_.push_back({{"role", "system"}, {"content", system}});
}

void Conversation::clear() {
  const bool has_system = !messages_.empty() && is_by(messages_.front(), "system");
  messages_.erase(messages_.begin() + (has_system ? 1 : 0), messages_.end());
}

void Conversation::say(const std::string& text) {
  messages_.push_back({{"role", "user"}, {"content", text}});
}

void Conversation::answer(const std::string& text, const std::string& thinking) {
  ordered_json message{{"role", "assistant"}, {"content", text}};
  if (!thinking.empty()) message["reasoning_content"] = thinking;
  messages_.push_back(std::move(message));
}

std::string Conversation::take_back() {
  while (!messages_.empty() && !is_by(messages_.back(), "system")) {
    const ordered_json last = std::move(messages_.back());
    messages_.erase(messages_.end() - 1);
    if (is_by(last, "user")) return last.at("content").is_string() ? last.at("content") : ordered_json("");
  }
  return "";
}

bool Conversation::forget_first() {
  if (count_old_turns(messages_) == 0) return false;
  messages_ = without_old_turns(messages_, 1);
  return true;
}

std::string Conversation::prompt() const {
  ChatTemplateInput input = special_;
  input.messages = messages_;
  return template_.render(input).text;
}

void Conversation::load(const std::filesystem::path& path) {
  ordered_json root = detail::parse_ordered_json(read_text_file(path), path.string());
  if (root.is_object() && root.contains("messages")) root = ordered_json(root["messages"]);
  if (!root.is_array()) throw FileError(fmt::format("{}: must be a list of messages", path.string()));
  for (const ordered_json& message : root) {
    const bool fits = message.is_object() && message.contains("role") && message["role"].is_string() &&
                      message.contains("content");
    if (!fits)
      throw FileError(
          fmt::format("{}: holds a message that is no object with 'role' and 'content'", path.string()));
  }
  messages_ = std::move(root);
}

ordered_json parse_chat_json(std::string_view text, const std::string& where) {
  return detail::parse_ordered_json(text, where);
}

ChatTemplateInput read_conversation(const std::filesystem::path& path) {
  const std::string where = path.string();
  ordered_json root = parse_chat_json(read_text_file(path), where);
  if (root.is_array()) root = ordered_json{{"messages", std::move(root)}};
  if (!root.is_object())
    throw FileError(fmt::format("{}: must be an object with 'messages', or a list of messages", where));
  ChatTemplateInput input;
  input.messages = take(root, "messages");
  if (!input.messages.is_array())
    throw FileError(fmt::format("{}: field 'messages' must be a list of messages", where));
  input.tools = take(root, "tools");
  input.documents = take(root, "documents");
  const ordered_json prompt = take(root, "add_generation_prompt");
  if (!prompt.is_null() && !prompt.is_boolean())
    throw FileError(fmt::format("{}: field 'add_generation_prompt' must be true or false", where));
  input.add_generation_prompt = prompt.is_boolean() && prompt.get<bool>();
  input.variables = std::move(root);
  return input;
}

}  // namespace caldera
