// LoadedModel: a model in memory, and what answers requests with it.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "engine/base/small_memory.h"
#include "lm/generate/batch/batch_generator.h"
#include "lm/generate/speculation.h"
#include "lm/serve/engine/batch_engine.h"
#include "lm/serve/engine/model_embedder.h"
#include "lm/serve/model_server_options.h"
#include "lm/serve/service/service.h"

namespace caldera::serve {

class LoadedModel {
 public:
  /// Opens a folder or a .gguf file. Throws as the constructor of ModelServer does.
  LoadedModel(const std::filesystem::path& dir, const ModelServerOptions& options);

  Service& service() { return *service_; }
  const ServedModel& served() const { return served_; }
  /// Says why there is no chat; empty where there is.
  const std::string& problem() const { return problem_; }
  const SamplingOptions& sampling() const { return sampling_; }
  std::int64_t context() const { return engine_ ? engine_->context() : embedder_->max_tokens(); }

 private:
  void open_embedder(const std::filesystem::path& dir, Device device, const ModelServerOptions& options);
  void open_generator(const std::filesystem::path& dir, Device device, const ModelServerOptions& options);
  /// Refuses one that leaves no room for a conversation.
  void check_system_prompt(std::int64_t context) const;

  /// Gives back what the thread that closes the model keeps of its nodes, when all of them are gone: any
  /// thread may be the last that has it, and each would keep some.
  struct TrimmedLast {
    TrimmedLast() = default;
    ~TrimmedLast() { trim_small_memory(); }
    TrimmedLast(const TrimmedLast&) = delete;
    TrimmedLast& operator=(const TrimmedLast&) = delete;
  };
  TrimmedLast trimmed_last_;

  // In the order in which they refer to one another.
  std::unique_ptr<CausalLM> model_;
  ServedModel served_;
  std::string problem_;
  SamplingOptions sampling_;
  std::optional<Speculation> speculation_;
  std::optional<BatchGenerator> generator_;
  std::optional<BatchEngine> engine_;
  std::optional<ModelEmbedder> embedder_;
  std::optional<Service> service_;
};

}  // namespace caldera::serve
