#include "lm/tokenizers/decoders/decoder_sequence.h"

#include <string>

namespace caldera::detail {
namespace {

class SequenceDecoder final : public Decoder {
 public:
  explicit SequenceDecoder(std::vector<std::unique_ptr<Decoder>> steps) : steps_(std::move(steps)) {}
  std::vector<std::string> decode(std::vector<std::string> tokens) const override {
    for (const auto& step : steps_) tokens = step->decode(std::move(tokens));
    return tokens;
  }
  void rewrite_inner(InnerToken& token) const override {
    for (const auto& step : steps_) step->rewrite_inner(token);
  }

 private:
  std::vector<std::unique_ptr<Decoder>> steps_;
};

}  // namespace

std::unique_ptr<Decoder> make_sequence(std::vector<std::unique_ptr<Decoder>> steps) {
  return std::make_unique<SequenceDecoder>(std::move(steps));
}

}  // namespace caldera::detail
