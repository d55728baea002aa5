// A text that is being continued, and whether it has come to its end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "lm/generate/generate_options.h"
#include "lm/generate/sampling/sampler.h"

namespace caldera {

class Continuation {
 public:
  Continuation(std::span<const std::int32_t> prompt, const GenerateOptions& options, Generation& result)
      : options_(options), result_(result), ids_(prompt.begin(), prompt.end()), prompt_size_(prompt.size()) {}

  /// The prompt and what was drawn.
  std::span<const std::int32_t> ids() const { return ids_; }
  std::int64_t size() const { return static_cast<std::int64_t>(ids_.size()); }
  std::int64_t left() const { return options_.max_tokens - static_cast<std::int64_t>(result_.ids.size()); }
  SamplingContext context() const { return {.seen = ids_, .prompt_size = prompt_size_}; }

  /// Adds a token that was drawn and tells the receiver. False where the text stops here.
  bool add(std::int32_t id) {
    ids_.push_back(id);
    result_.ids.push_back(id);
    const bool go_on = !options_.on_token || options_.on_token(id);
    const auto& stops = options_.stop_ids;
    if (go_on && std::find(stops.begin(), stops.end(), id) == stops.end()) return true;
    result_.finish_reason = FinishReason::stop;
    return false;
  }

 private:
  const GenerateOptions& options_;
  Generation& result_;
  std::vector<std::int32_t> ids_;
  std::size_t prompt_size_;
};

}  // namespace caldera
