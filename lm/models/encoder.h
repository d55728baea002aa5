// Encoder: a model whose hidden states are what it gives. It is a decoder whose positions see one another and
// that has no head.
#pragma once

#include <string>

#include "lm/models/decoder.h"

namespace caldera {

/// hidden_states() takes no cache but PackedTexts, for texts of several lengths beside padding.
class Encoder : public Decoder {
 public:
  /// `module` is what names begin with in checkpoints of models that have a head on top: "bert.".
  Encoder(const ModelConfig& config, const DecoderParts& parts, std::uint64_t seed, std::string module);

  const ModelConfig& config() const override { return config_; }
  /// Throws ValueError: there is no head.
  LazyTensor logits(const LazyTensor& hidden) override;
  std::optional<LinearHead> linear_head() const override { return std::nullopt; }

 protected:
  std::string stored_name(const std::string& name) const override { return module_ + name; }
  /// Whatever is beside the parameters belongs to heads and poolers.
  bool is_harmless(const std::string& name) const override;

 private:
  ModelConfig config_;
  std::string module_;
};

}  // namespace caldera
