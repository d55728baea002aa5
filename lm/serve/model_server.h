// <caldera/serve.h>: a language model behind OpenAI's API over HTTP.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
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
  /// LoRA adapters: a name, that requests call as a model, and a folder each.
  std::vector<std::pair<std::string, std::filesystem::path>> adapters;
  SamplingDefaults sampling;
  SpeculationOptions speculation;
  bool split_thinking = true;      ///< an answer's thinking becomes "reasoning_content"
  bool lenient_schemas = false;    ///< schemas are held as far as they can be, and none is refused
  bool embeddings = false;         ///< vectors alone, also of a model that generates text
  std::optional<Pooling> pooling;  ///< of embeddings; else the model's own
  bool matryoshka = false;         ///< requests may shorten embeddings, whatever the model's files say
};

/// A model that generates text or gives embeddings (docs/guide/serving.md has the API). It works on threads
/// of its own; the functions below may be called from any thread.
class ModelServer {
 public:
  /// Opens the model, a folder or a .gguf file: a model made for embeddings gives those. Throws FileError
  /// where it or an adapter cannot be read, ValueError for options that do not go together. Raises the
  /// process's limit of open files to 8192, or what the system allows: each client takes one.
  explicit ModelServer(const std::filesystem::path& model, ModelServerOptions options = {});
  /// Stops, if that has not been done.
  ~ModelServer();
  ModelServer(const ModelServer&) = delete;
  ModelServer& operator=(const ModelServer&) = delete;

  /// Listens and answers from now on; returns the port. Once. Throws FileError where the address cannot be
  /// had.
  int start();
  /// Says where it listens: "http://127.0.0.1:8080". After start().
  const std::string& url() const;
  /// Refuses new requests, waits for those under way, ServeLimits::drain_seconds at most, and ends.
  void stop();
  /// Ends those under way at once: for a stop() that another thread is in.
  void hurry();
  /// Starts, calls `on_start`, blocks until the process gets SIGINT or SIGTERM, calls `on_stop`, and stops; a
  /// second signal hurries. Both may be empty. Throws as start().
  void run(const std::function<void()>& on_start = {}, const std::function<void()>& on_stop = {});

  /// Returns the name that requests call the model.
  const std::string& name() const;
  std::vector<std::string> adapters() const;
  /// Bounds the tokens of a request, its answer included.
  std::int64_t context() const;
  /// Whether it generates text; else it gives embeddings.
  bool generates() const;
  /// Says how tokens are drawn of requests that say nothing of it.
  const SamplingOptions& sampling() const;
  /// Says why there is no chat: a sentence, empty where there is. (Completions need no chat template.)
  const std::string& chat_problem() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace caldera::serve
