// CompletionOptions: what the requests of /v1/chat/completions and /v1/completions have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lm/generate/sampling/sampling_options.h"
#include "lm/serve/protocol/fields.h"
#include "lm/serve/protocol/limits.h"

namespace caldera::serve {

enum class OutputFormat : std::uint8_t { text, json_object, json_schema };

struct CompletionOptions {
  std::string model;  ///< empty: the model itself
  SamplingOptions sampling;
  std::optional<std::int64_t> max_tokens;
  std::int64_t choices = 1;  ///< "n"
  std::vector<std::string> stop;
  std::vector<std::int32_t> stop_ids;
  bool ignore_eos = false;
  std::optional<std::int64_t> logprobs;  ///< how many of the most likely tokens to tell beside each
  bool stream = false;
  bool include_usage = false;  ///< a last chunk of a stream tells the usage
  OutputFormat format = OutputFormat::text;
  Json schema;  ///< of OutputFormat::json_schema
};

/// The names of the fields that read_options() reads, and of those that change no text and are passed over.
const std::vector<std::string_view>& option_fields();

/// Reads them. Without a "seed" the seed is random. Throws ApiError 400, also for a "max_tokens" below
/// `least_tokens`.
CompletionOptions read_options(const Fields& fields, const ServeLimits& limits,
                               std::int64_t least_tokens = 1);

}  // namespace caldera::serve
