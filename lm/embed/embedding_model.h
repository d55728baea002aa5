// EmbeddingModel: texts to vectors, with an encoder or a decoder, as sentence-transformers does.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lm/embed/sentence_modules.h"
#include "lm/models/causal_lm.h"
#include "lm/tokenizers/tokenizer.h"

namespace caldera {

struct EncodeOptions {
  std::optional<Pooling> pooling = {};  ///< else the folder's, or the mean where it says nothing
  std::optional<bool> normalize = {};   ///< to length 1; else what the folder says
  /// A name among the folder's prompts, put in front of each text; else the folder's default.
  std::optional<std::string> prompt_name = {};
  std::int64_t batch_size = 32;
};

/// The vectors of texts, and what they took.
struct EncodedTexts {
  std::vector<std::vector<float>> embeddings;
  std::vector<std::int64_t> tokens;    ///< of each text, special ones and a prompt's among them
  std::vector<std::int64_t> left_out;  ///< of each text, as the model takes no more: 0 of most
};

/// Whether the files of a model, a folder or a .gguf file, say that it is made for embeddings: an encoder, or
/// one with a modules.json that pools. Throws FileError.
bool is_embedding_model(const std::filesystem::path& path);

/// One thread at a time uses a model.
class EmbeddingModel {
 public:
  /// Opens a model folder: its model (load_text_model), tokenizer, and modules.json. Throws FileError.
  static EmbeddingModel from_pretrained(const std::filesystem::path& dir, Device device,
                                        DType dtype = DType::f32);

  /// The width of the vectors.
  std::int64_t dimension() const;
  /// Tokens of a text at most, special ones among them: what the folder says, and no more than the model has.
  std::int64_t max_length() const;
  CausalLM& model() { return *model_; }
  const SentenceModules& modules() const { return modules_; }

  /// The tokens of a text behind its prompt, all of them, with special ones: what encode() cuts to
  /// max_length(). Throws ValueError as encode() does. May be called from several threads at once.
  std::vector<std::int32_t> tokenize(const std::string& text, const EncodeOptions& options = {}) const;

  /// The vectors of texts, in f32. Texts that are longer than the model allows are cut behind, but keep the
  /// special tokens at their end. Throws ValueError for a batch size below 1 or a prompt name that the folder
  /// does not have.
  EncodedTexts encode(std::span<const std::string> texts, const EncodeOptions& options = {});
  /// Embeds token ids, as a tensor (texts, dimension) that is not computed yet. Throws ValueError for a text
  /// without tokens.
  LazyTensor embed(std::span<const std::vector<std::int32_t>> texts, const EncodeOptions& options = {});

 private:
  struct Dense {
    LazyTensor weight;
    LazyTensor bias;
    bool tanh = false;
  };

  EmbeddingModel(std::unique_ptr<CausalLM> model, std::unique_ptr<Tokenizer> tokenizer,
                 SentenceModules modules);
  void read_dense();

  std::unique_ptr<CausalLM> model_;
  std::unique_ptr<Tokenizer> tokenizer_;
  SentenceModules modules_;
  std::vector<Dense> dense_;
};

}  // namespace caldera
