// The models that the suite "decode" runs: files with random weights, made when their rows come.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "lm/models/causal_lm.h"
#include "lm/models/llama.h"

namespace caldera::bench {

/// Holds what a model's files and its speed depend on.
struct Proportions {
  std::string name;
  LlamaConfig config;
  /// Is the type that the weights are made in, which every file is converted from.
  DType made_in = DType::f32;
};

/// Counts the parameters of the matrices that multiply every token, the head's left out.
double layer_parameters(const ModelConfig& config);

/// A model as `caldera generate` has it.
struct LoadedModel {
  std::filesystem::path file;  // GGUF
  std::unique_ptr<CausalLM> model;
  /// Counts what a token must read of it, in bytes as the file has them.
  double weight_bytes = 0;
  /// Kept for the row that follows: texts of so many tokens, say, that were fed.
  std::shared_ptr<void> kept;
  std::string kept_name;
};

/// Makes files in a folder of its own, under the system's folder for temporary files, which goes with it; and
/// keeps what was asked for last, as rows of one model follow one another.
class ModelStore {
 public:
  ModelStore() = default;
  ~ModelStore();
  ModelStore(const ModelStore&) = delete;
  ModelStore& operator=(const ModelStore&) = delete;

  /// Makes the file, its matrices in `type` (one of weight_types(ModelFormat::gguf)), and loads it. Throws
  /// FileError where there is no room for it.
  std::shared_ptr<LoadedModel> load(const Proportions& proportions, const std::string& type, Device device);

 private:
  /// The folder of the model that files are converted from.
  std::filesystem::path base(const Proportions& proportions);

  std::filesystem::path folder_;
  std::string base_name_;
  std::string loaded_name_;
  std::shared_ptr<LoadedModel> loaded_;
};

}  // namespace caldera::bench
