// The files of a model folder that describe its tokenizer beside the vocabulary. Private to lm/tokenizers/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "lm/tokenizers/pipeline/pipeline.h"

namespace caldera::detail {

/// config.json, tokenizer_config.json, special_tokens_map.json and added_tokens.json; what a folder does not
/// have is empty. Getters throw FileError for a field of the wrong type.
class ModelFolder {
 public:
  explicit ModelFolder(std::filesystem::path dir);

  std::filesystem::path path(const char* file) const { return dir_ / file; }
  bool has(const char* file) const;

  /// Rows of the model's vocabulary, or 0.
  std::int64_t model_vocab_size() const;
  /// The class that the transformers library opens the tokenizer with, without "Fast" at its end; "" where no
  /// file says.
  std::string tokenizer_class() const;
  std::optional<bool> flag(const char* field) const;
  std::optional<std::int64_t> integer(const char* field) const;
  /// The text of `bos_token` and its like.
  std::optional<std::string> special_token(const char* field) const;

  /// Adds what these files say to the stages of a vocabulary: added tokens, which tokens are special, the ids
  /// of bos and eos, and the tokens around a text where the transformers library sets those itself.
  void complete(TokenizerParts& parts) const;

 private:
  void add_tokens(TokenizerParts& parts) const;
  void mark_special(TokenizerParts& parts) const;
  /// `field` of config.json: an id, or a list of ids of which the first counts.
  std::optional<std::int32_t> id_from_config(const char* field, std::int64_t limit) const;

  std::filesystem::path dir_;
  nlohmann::json config_;
  nlohmann::json tokenizer_config_;
  nlohmann::json special_tokens_;
  nlohmann::json added_tokens_;
  std::string config_where_;
  std::string tokenizer_config_where_;
};

/// Whether the class takes bos and eos from add_bos_token and add_eos_token, whatever the file's
/// post-processor: Llama's does, and what derives from it.
bool is_llama_class(const std::string& tokenizer_class);

}  // namespace caldera::detail
