// The chat templates that a model's folder holds, and the special tokens that they name.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lm/chat/template/chat_template.h"

namespace caldera {

/// A template as it is stored.
struct StoredChatTemplate {
  std::string name;    ///< "default" where the model has one alone
  std::string source;  ///< Jinja
};

/// Holds what a model's files say of conversations. Nothing is parsed yet: a model may carry templates that
/// are never asked for.
struct ModelChatTemplates {
  std::string where;  ///< the folder or file, for messages
  std::vector<StoredChatTemplate> templates;
  /// The texts of bos_token, eos_token, pad_token, unk_token and the like, as far as the model has them.
  std::map<std::string, std::string> special_tokens;

  /// The source of the template with this name. Without a name it is chosen as transformers'
  /// `get_chat_template` does: the only one; of several "tool_use" where there are tools, else "default".
  /// Throws a ValueError that lists what there is.
  const std::string& source(std::string_view name = {}, bool with_tools = false) const;

  /// Gives `input` the special tokens, where it has no values of its own for them.
  void add_special_tokens(ChatTemplateInput& input) const;
};

/// Reads a model folder in Hugging Face's layout: chat_template.jinja and additional_chat_templates/*.jinja,
/// else "chat_template" of chat_template.json or of tokenizer_config.json (a text, or a list of named ones);
/// special tokens from tokenizer_config.json, then from special_tokens_map.json. Or a GGUF file, with what
/// its metadata says. A model without a template gives none. Throws FileError for files that do not hold what
/// they should.
ModelChatTemplates load_chat_templates(const std::filesystem::path& model);

}  // namespace caldera
