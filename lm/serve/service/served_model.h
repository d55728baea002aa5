// ServedModel: what the server knows of the model beside the engine: its name, its texts, its end.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lm/chat/template/chat_template.h"
#include "lm/chat/tools/tool_formats.h"
#include "lm/tokenizers/tokenizer.h"

namespace caldera::serve {

struct ServedModel {
  std::string name;                   ///< what clients call it
  std::vector<std::string> adapters;  ///< names of adapters, which clients call as models
  std::shared_ptr<const Tokenizer> tokenizer;
  std::optional<ChatTemplate> chat;             ///< none: /v1/chat/completions says so
  std::string system_prompt;                    ///< of conversations that have none; empty: none
  std::optional<ChatTemplate> chat_with_tools;  ///< where the model has another one for tools
  /// The special tokens that templates name: "bos_token" and the like.
  std::map<std::string, std::string> special_tokens;
  std::optional<ToolFormat> tools;  ///< how the template writes calls; none: it is not known
  bool split_thinking = true;       ///< thinking becomes "reasoning_content", not part of the answer
  /// Schemas are held as far as they can be; else those that cannot are refused.
  bool lenient_schemas = false;
  /// Tokens that end a text: a chat turn's end as well.
  std::vector<std::int32_t> stop_ids;
  std::int64_t created = 0;  ///< seconds since 1970
};

}  // namespace caldera::serve
