#include "lm/generate/text_decoder.h"

#include <algorithm>
#include <utility>

namespace caldera {

TextDecoder::TextDecoder(const TextOptions& options, std::vector<std::int32_t> stop_ids, std::int64_t most,
                         std::span<const std::int32_t> prompt, std::int64_t least)
    : options_(options), stop_ids_(std::move(stop_ids)), left_(most), least_(least), stops_(options.stop) {
  if (options_.tokenizer == nullptr) return;
  decoder_.emplace(*options_.tokenizer, options_.keeps_special == nullptr);
  if (options_.continues_prompt) decoder_->prime(prompt);
}

DecodedToken TextDecoder::take(std::int32_t id) {
  --left_;
  const bool is_stop = std::ranges::find(stop_ids_, id) != stop_ids_.end();
  DecodedToken token;
  if (!is_stop) token.text = decode(id);
  if (is_stop || stops_.stopped())
    token.finish = FinishReason::stop;
  else if (left_ <= 0)
    token.finish = FinishReason::length;
  if (!token.finish) return token;
  token.text += rest();
  // The rest may have been the end of a stop string.
  if (stops_.stopped()) token.finish = FinishReason::stop;
  token.stop = stops_.found();
  return token;
}

std::string TextDecoder::decode(std::int32_t id) {
  const bool is_early = least_-- > 0;
  if (!decoder_) return {};
  const bool left_out =
      options_.keeps_special && options_.tokenizer->is_special(id) && !options_.keeps_special(id);
  if (left_out) return {};
  return is_early ? decoder_->push(id) : stops_.push(decoder_->push(id));
}

std::string TextDecoder::rest() {
  if (!decoder_ || stops_.stopped()) return {};
  const std::string shown = stops_.push(decoder_->finish());
  return shown + stops_.finish();
}

}  // namespace caldera
