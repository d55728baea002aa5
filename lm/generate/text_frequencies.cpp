#include "lm/generate/text_frequencies.h"

#include <fmt/format.h>

#include <algorithm>

#include "lm/nn/attention/rope_frequencies.h"

namespace caldera {

TextFrequencies::TextFrequencies(const ModelConfig& config) : max_positions_(config.max_position_embeddings) {
  const auto add = [&](const RopeScaling& scaling) {
    if (!depends_on_length(scaling)) return;
    scalings_.push_back(scaling);
    if (scaling.type == RopeType::longrope) switch_ = scaling.original_positions(max_positions_);
  };
  add(config.rope_scaling);
  if (config.local_rope) add(config.local_rope->scaling);
}

std::string TextFrequencies::kind(std::int64_t text_length) const {
  std::string kind;
  bool depends = false;
  for (const RopeScaling& scaling : scalings_) {
    const std::int64_t key = frequency_key(scaling, max_positions_, text_length);
    depends = depends || key != 0;
    kind += fmt::format("@{}", key);
  }
  return depends ? kind : std::string();
}

}  // namespace caldera
