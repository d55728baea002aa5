#include "lm/serve/service/load_model.h"

#include <chrono>

#include "lm/chat/model_chat_templates.h"
#include "lm/chat/template/base/chat_template_error.h"
#include "lm/generate/generator.h"
#include "lm/tokenizers/sources/load_tokenizer.h"

namespace caldera::serve {
namespace {

void read_templates(const std::filesystem::path& dir, const std::string& given, ServedModel& model,
                    std::string& problem) {
  const ModelChatTemplates stored = load_chat_templates(dir);
  model.special_tokens = stored.special_tokens;
  if (!given.empty()) {
    model.chat.emplace(given);
    model.tools = find_tool_format(given);
    return;
  }
  if (stored.templates.empty()) return;
  try {
    const std::string& plain = stored.source();
    const std::string& tools = stored.source({}, true);
    model.chat.emplace(plain);
    if (tools != plain) model.chat_with_tools.emplace(tools);
    model.tools = find_tool_format(tools);
  } catch (const Error& error) {
    problem = error.what();
    model.chat.reset();
  }
}

}  // namespace

ServedModel load_served_embedder(const std::filesystem::path& dir) {
  ServedModel model;
  std::filesystem::path name = std::filesystem::absolute(dir).lexically_normal();
  if (!name.has_filename()) name = name.parent_path();
  model.name = name.filename().string();
  model.created =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  return model;
}

ServedModel load_served_model(const std::filesystem::path& dir, const ModelConfig& config,
                              const std::string& chat_template, std::string& problem) {
  ServedModel model = load_served_embedder(dir);
  model.tokenizer = load_tokenizer(dir);
  read_templates(dir, chat_template, model, problem);

  model.stop_ids = stop_tokens(config, load_generation_config(dir), model.tokenizer->eos_id());
  return model;
}

}  // namespace caldera::serve
