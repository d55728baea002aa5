// ChatFormat: conversations as examples, written as a model's chat template writes them.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "lm/chat/model_chat_templates.h"
#include "training/data/forms/example.h"

namespace caldera {

/// Renders conversations for training. One thread at a time may use it.
class ChatFormat {
 public:
  /// Takes the templates of a model. The one for conversations without tools is parsed when it is needed
  /// first: data that hold no conversation do without.
  explicit ChatFormat(ModelChatTemplates model) : model_(std::move(model)) {}

  /// Renders a whole conversation: what the assistant says is `learned`. The template's {% generation %}
  /// blocks say where that is; without them it is what each of the assistant's messages adds to the text that
  /// asked for it. A message with "train": false (or "weight": 0) is not learned. Throws ValueError where a
  /// template without such blocks writes a conversation differently once it goes on, or where the model has
  /// no template; ChatTemplateError where the template does not parse, fails or refuses.
  Example conversation(const nlohmann::ordered_json& messages, const nlohmann::ordered_json& tools);

  /// Renders `messages` and the beginning of an answer as the prompt, and what `answer` (more messages) adds
  /// to it as the text. Throws as conversation() does.
  Example answer(const nlohmann::ordered_json& messages, const nlohmann::ordered_json& answer,
                 const nlohmann::ordered_json& tools);

 private:
  RenderedChat render(const nlohmann::ordered_json& messages, const nlohmann::ordered_json& tools,
                      bool add_generation_prompt);
  /// The bytes of `whole` behind the prompt for `messages`.
  std::size_t prompt_end(const std::string& whole, const nlohmann::ordered_json& messages,
                         const nlohmann::ordered_json& tools);

  ModelChatTemplates model_;
  std::optional<ChatTemplate> template_;
};

}  // namespace caldera
