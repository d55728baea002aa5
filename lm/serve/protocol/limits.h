// ServeLimits: what a client may ask for at most, and what it gets where it says nothing.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lm/generate/sampling/sampling_options.h"

namespace caldera::serve {

struct ServeLimits {
  std::size_t max_body = std::size_t{8} << 20;  ///< bytes of a request's body (413)
  int max_depth = 64;                           ///< nesting of its JSON
  std::size_t max_messages = 2048;              ///< of a conversation
  std::size_t max_tools = 256;
  std::size_t max_prompts = 64;       ///< of one call of /v1/completions
  std::size_t max_inputs = 2048;      ///< of one call of /v1/embeddings
  std::int64_t max_choices = 16;      ///< "n"
  std::size_t max_stops = 16;         ///< stop strings
  std::size_t max_stop_bytes = 512;   ///< bytes of one
  std::size_t max_bias = 2048;        ///< entries of "logit_bias"
  std::int64_t max_tokens = 1 << 20;  ///< of "max_tokens"; the context bounds it as well
  std::int64_t max_clients = 64;      ///< requests that are answered at once (429 beyond)
  int request_seconds = 600;          ///< a request that takes longer is cancelled
  int read_seconds = 10;              ///< for a client that sends
  int write_seconds = 30;             ///< for a client that receives
  int drain_seconds = 20;             ///< for requests under way once the server is asked to stop
  /// Says how tokens are drawn of requests that say nothing of it: temperature, top-k, top-p, min-p and
  /// repetition penalty.
  SamplingOptions sampling{.temperature = 1};
};

}  // namespace caldera::serve
