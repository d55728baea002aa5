// SentenceModules: how a model folder says that texts become vectors: modules.json of sentence-transformers
// and the folders that it names.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "lm/embed/pooling.h"

namespace caldera {

/// A linear map behind the pooling, with an activation.
struct DenseModule {
  std::filesystem::path folder;  ///< of its model.safetensors: "linear.weight", and "linear.bias" if any
  std::int64_t in = 0;
  std::int64_t out = 0;
  bool bias = true;
  bool tanh = false;  ///< else the identity
};

struct SentenceModules {
  std::optional<Pooling> pooling = {};  ///< none where the folder says nothing
  bool include_prompt = true;           ///< whether a prompt's tokens count in the pooling
  std::vector<DenseModule> dense = {};
  bool normalized = false;
  std::optional<std::int64_t> max_length = {};  ///< tokens, special ones among them; longer texts are cut
  std::map<std::string, std::string> prompts = {};
  std::string default_prompt = {};  ///< a name among the prompts, or empty
  /// config.json's "is_matryoshka": the first numbers of a vector are a vector by themselves. Where it lists
  /// "matryoshka_dimensions", only so many of them.
  bool matryoshka = false;
  std::vector<std::int64_t> matryoshka_dimensions = {};

  /// Reads modules.json, 1_Pooling/config.json, 2_Dense/config.json and so on, sentence_bert_config.json,
  /// config_sentence_transformers.json and a few fields of config.json, those of them that are there; of a
  /// GGUF file its pooling_type. Throws FileError for a malformed one, a module that is not known, and one
  /// outside of the folder.
  static SentenceModules from_folder(const std::filesystem::path& model_dir);
};

}  // namespace caldera
