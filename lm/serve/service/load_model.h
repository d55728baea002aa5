// Opens what the server has to know of a model's folder beside its weights.
#pragma once

#include <filesystem>

#include "lm/formats/config/model_config.h"
#include "lm/serve/service/served_model.h"

namespace caldera::serve {

/// Reads the tokenizer, the chat template and what ends a text: the ends of config.json, of
/// generation_config.json and of the tokenizer. A template that does not parse is noted in `problem`, and the
/// model has none. `chat_template`: in place of the model's own, where it is not empty; Jinja. Throws
/// FileError where there is no tokenizer, ChatTemplateError for a `chat_template` that does not parse.
ServedModel load_served_model(const std::filesystem::path& dir, const ModelConfig& config,
                              const std::string& chat_template, std::string& problem);

/// Loads a model that gives embeddings: its name alone is needed.
ServedModel load_served_embedder(const std::filesystem::path& dir);

}  // namespace caldera::serve
