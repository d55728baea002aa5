// The small Llamas of the tests.
#pragma once

#include <cstdint>

#include "lm/formats/config/model_config.h"

namespace caldera::testing {

/// Sizes of a Llama whose heads are as wide as its features together. The vocabulary is ByteTokenizer's.
struct TinyLlama {
  std::int64_t hidden = 16;
  std::int64_t intermediate = 0;  ///< 0: one and a half times as many
  std::int64_t layers = 2;
  std::int64_t heads = 4;
  std::int64_t kv_heads = 2;
  std::int64_t vocabulary = 258;
  std::int64_t positions = 64;
  bool tied = true;                 ///< the embeddings are the output matrix too
  double initializer_range = 0.02;  ///< 0.4 and more: logits differ so much that an error shows
};

inline ModelConfig tiny_llama(const TinyLlama& sizes = {}) {
  ModelConfig config;
  config.hidden_size = sizes.hidden;
  config.intermediate_size = sizes.intermediate > 0 ? sizes.intermediate : sizes.hidden * 3 / 2;
  config.num_hidden_layers = sizes.layers;
  config.num_attention_heads = sizes.heads;
  config.num_key_value_heads = sizes.kv_heads;
  config.head_dim = sizes.hidden / sizes.heads;
  config.vocab_size = sizes.vocabulary;
  config.max_position_embeddings = sizes.positions;
  config.tie_word_embeddings = sizes.tied;
  config.initializer_range = sizes.initializer_range;
  return config;
}

}  // namespace caldera::testing
