// Generator of the eager API: continues a prompt, whole, token by token, or on a thread of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eager/language_model.h"
#include "eager/sampling.h"
#include "lm/tokenizers/tokenizer.h"

namespace caldera::v1 {

struct GeneratorConfig {
  std::int64_t max_tokens = 100;
  SamplingStrategy sampling = SamplingStrategy::greedy();
  /// Change what `sampling` says, where they are given.
  std::optional<double> temperature = std::nullopt;
  std::optional<double> top_p = std::nullopt;
  std::optional<std::int64_t> top_k = std::nullopt;
  double repetition_penalty = 1;
  bool stop_on_eos = true;
  /// Nothing: what the model's configuration calls the end.
  std::optional<std::int32_t> eos_token_id = std::nullopt;
  /// Further tokens that end the text.
  std::vector<std::int32_t> stop_tokens = {};
  std::uint64_t seed = 0;

  /// Throws InferenceError: InvalidConfig for max_tokens below 1, InvalidSampling for the rest.
  void validate() const;
};

struct StreamToken {
  std::int32_t token_id = 0;
  std::string text;        ///< of the token, as far as it makes whole characters; empty without a tokenizer
  float logit = 0;         ///< before the penalty and the filters
  double probability = 0;  ///< softmax of those logits
  bool is_eos = false;     ///< it ends the text
};

/// Tokens of a generation that runs on a thread of its own.
class TokenStream {
 public:
  TokenStream(TokenStream&&) noexcept;
  /// Ends the generation after the token at hand, and waits.
  ~TokenStream();

  /// Waits for the next token; nothing behind the last. Throws what the generation threw.
  std::optional<StreamToken> next();

 private:
  friend class Generator;
  struct State;
  explicit TokenStream(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Continues prompts with a model, whose keys and values it keeps while it does. One thread at a time, the
/// model's stream among them.
class Generator {
 public:
  /// `tokenizer` makes the texts of StreamToken; may be null. Throws as GeneratorConfig::validate.
  Generator(LanguageModel model, GeneratorConfig config,
            std::shared_ptr<const Tokenizer> tokenizer = nullptr);

  /// The new tokens, a stop token the last of them. The same arguments give the same tokens. Throws
  /// InferenceError (Failed) for an empty prompt, an id outside of the vocabulary, and more tokens than the
  /// model has positions.
  std::vector<std::int32_t> generate(std::span<const std::int32_t> prompt) const;
  /// Hands out each token; `on_token` says whether to go on. Returns the tokens. Throws as generate().
  std::vector<std::int32_t> generate_stream(std::span<const std::int32_t> prompt,
                                            const std::function<bool(const StreamToken&)>& on_token) const;
  /// Begins to generate. Generator and model must not be used by another until the stream is gone.
  TokenStream generate_stream_async(std::vector<std::int32_t> prompt) const;

  const GeneratorConfig& config() const { return config_; }

 private:
  LanguageModel model_;
  GeneratorConfig config_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace caldera::v1
