// ModelServerOptions: how models are served.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/tensor/device.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/quantized_format.h"
#include "lm/embed/embedding_model.h"
#include "lm/generate/batch/batch_request.h"
#include "lm/generate/speculation.h"
#include "lm/serve/http/server_options.h"
#include "lm/serve/protocol/limits.h"

namespace caldera::serve {

/// Says how tokens are drawn of requests that say nothing of it.
struct SamplingDefaults {
  /// Whether the model's generation_config.json says what these leave out: its temperature where it says that
  /// tokens are drawn, top-k, top-p, min-p and repetition penalty. Else they are OpenAI's: temperature 1.
  bool from_model = true;
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<std::int64_t> top_k;
};

/// Says how a model is served.
struct ModelServerOptions {
  ServerOptions http;
  ServeLimits limits;            ///< of one client
  BatchLimits batch;             ///< of all requests together
  std::optional<Device> device;  ///< else the default one
  DType dtype = DType::f32;
  Activations activations =
      Activations::rounded;                 ///< see CausalLM::set_activations; models that embed: exact
  CacheType cache_type = CacheType::model;  ///< see CausalLM::set_cache_type; not of models that embed
  std::string name;                         ///< that requests call the model; "": its folder's
  /// More models: a name and a folder or .gguf file each, which are opened when they are asked for. Adapters
  /// are those of the first.
  std::vector<std::pair<std::string, std::filesystem::path>> more_models;
  std::size_t max_models = 0;  ///< that are open at once; 0: all
  /// LoRA adapters: a name, that requests call as a model, and a folder each.
  std::vector<std::pair<std::string, std::filesystem::path>> adapters;
  std::string chat_template;  ///< Jinja, in place of the models' own; "": theirs
  std::string system_prompt;  ///< of conversations that have no message of the system's
  SamplingDefaults sampling;
  SpeculationOptions speculation;
  bool split_thinking = true;  ///< an answer's thinking becomes "reasoning_content"
  /// Keeps keys and values of prompts in this folder, `prompt_cache_bytes` at most, for a server that begins
  /// again. Empty: it does not.
  std::filesystem::path prompt_cache;
  std::uint64_t prompt_cache_bytes = std::uint64_t{4} << 30;
  bool lenient_schemas = false;    ///< schemas are held as far as they can be, and none is refused
  bool embeddings = false;         ///< vectors alone, also of a model that generates text
  std::optional<Pooling> pooling;  ///< of embeddings; else the model's own
  bool matryoshka = false;         ///< requests may shorten embeddings, whatever the model's files say
};

}  // namespace caldera::serve
