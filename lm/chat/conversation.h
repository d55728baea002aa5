// Conversation: the messages of a chat, as a model's template knows them.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "lm/chat/model_chat_templates.h"

namespace caldera {

/// Messages in the order they were said. It grows by one that the user says and one that the assistant
/// answers, or by neither.
class Conversation {
 public:
  /// Parses the template (ChatTemplateError). `variables` go into it as they are.
  Conversation(const std::string& source, const ModelChatTemplates& model, nlohmann::ordered_json variables);

  /// Sets or, with an empty text, removes what the system says; the rest is forgotten.
  void restart(const std::string& system);
  /// Forgets everything but what the system says.
  void clear();
  /// The user says something; take_back() undoes it.
  void say(const std::string& text);
  /// The assistant's answer, and what it thought before, which templates may show again.
  void answer(const std::string& text, const std::string& thinking);
  /// Removes the last thing that the user said and its answer; returns what was said. Empty where there is
  /// none.
  std::string take_back();

  /// Removes the first thing that the user said and what was answered. False, and nothing is removed, where
  /// the user has said no more than one thing.
  bool forget_first();

  /// The text that the model continues with its answer. Throws ChatTemplateError where the template refuses.
  std::string prompt() const;
  const nlohmann::ordered_json& messages() const { return messages_; }
  /// Goes on from messages that were saved. Throws FileError unless it is a list of objects.
  void load(const std::filesystem::path& path);

 private:
  ChatTemplate template_;
  ChatTemplateInput special_;  // without messages
  nlohmann::ordered_json messages_ = nlohmann::ordered_json::array();
};

/// Parses JSON that a template is to see: members in the order in which they are written, integers with all
/// their digits. `where` begins every error message. Throws FileError for text that is not JSON.
nlohmann::ordered_json parse_chat_json(std::string_view text, const std::string& where);

/// Reads a conversation as chat templates take it: an object with messages, and tools, documents,
/// add_generation_prompt and other variables; or the list of messages alone. Throws FileError.
ChatTemplateInput read_conversation(const std::filesystem::path& path);

}  // namespace caldera
