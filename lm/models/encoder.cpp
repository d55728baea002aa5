#include "lm/models/encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace caldera {

Encoder::Encoder(const ModelConfig& config, const DecoderParts& parts, std::uint64_t seed, std::string module)
    : Decoder(parts, seed), config_(config), module_(std::move(module)) {}

LazyTensor Encoder::logits(const LazyTensor& /*hidden*/) {
  throw ValueError(fmt::format("{} is an encoder: it has hidden states and no logits", config_.architecture));
}

bool Encoder::is_harmless(const std::string& name) const {
  constexpr std::array<std::string_view, 7> kHeads{"pooler.",  "cls.",        "lm_head.",   "head.",
                                                   "decoder.", "classifier.", "qa_outputs."};
  const auto begins = [](std::string_view text, std::string_view with) { return text.starts_with(with); };
  const std::string_view inner =
      begins(name, module_) ? std::string_view(name).substr(module_.size()) : std::string_view(name);
  return std::ranges::any_of(kHeads, [&](std::string_view head) { return begins(inner, head); }) ||
         name.ends_with("position_ids") || Decoder::is_harmless(name);
}

}  // namespace caldera
