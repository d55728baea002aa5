// The chat template of a model: how a conversation becomes the text that the model reads.
#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lm/chat/template/base/chat_template_error.h"
#include "lm/chat/template/base/limits.h"

namespace caldera {

namespace chat {
struct Program;
}

/// Holds what a template is rendered for.
struct ChatTemplateInput {
  /// The conversation: objects with "role", "content" and whatever else the template knows. Keys keep their
  /// order.
  nlohmann::ordered_json messages = nlohmann::ordered_json::array();
  /// Descriptions of functions that the model may call, and documents for it to read; null for none.
  nlohmann::ordered_json tools;
  nlohmann::ordered_json documents;
  /// Ends the text with what begins the assistant's answer.
  bool add_generation_prompt = false;
  /// The tokenizer's special tokens; undefined in the template where they are not given.
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  /// An object with more variables, such as {"enable_thinking": false}. They go before those above.
  nlohmann::ordered_json variables = nlohmann::ordered_json::object();
  /// The time that strftime_now() tells; the clock's local time where it is not given.
  std::optional<std::chrono::local_time<std::chrono::microseconds>> now;
};

/// A part of a rendered text.
struct ChatSpan {
  std::size_t begin = 0;  ///< in bytes
  std::size_t end = 0;
  std::size_t first = 0;  ///< in code points
  std::size_t last = 0;   ///< one behind the last

  bool operator==(const ChatSpan&) const = default;
};

struct RenderedChat {
  std::string text;  ///< UTF-8
  /// Lists what {% generation %} blocks gave, which is what the assistant says: the part to train on. In
  /// order and apart from one another; a block inside of another belongs to the outer one. A block in a macro
  /// or a set block counts where its text is printed, also when it has been joined to other texts or trimmed,
  /// but not behind other filters.
  std::vector<ChatSpan> generation;
};

/// A template in the dialect of Jinja that tokenizers of Hugging Face carry, rendered as
/// `apply_chat_template` renders it (docs/guide/chat-templates.md says what there is and what differs). It
/// may come from anyone: it can do nothing but give text, and the limits hold whatever it does.
///
/// A template does not change: many threads may render it at once.
class ChatTemplate {
 public:
  /// Throws a ChatTemplateError for a template that does not parse.
  explicit ChatTemplate(const std::string& source, const ChatTemplateLimits& limits = {});

  /// Throws a ChatTemplateError where rendering fails; a ChatTemplateRefusal where the template itself
  /// refuses the conversation.
  RenderedChat render(const ChatTemplateInput& input) const;

 private:
  std::shared_ptr<const chat::Program> program_;
  ChatTemplateLimits limits_;
};

}  // namespace caldera
