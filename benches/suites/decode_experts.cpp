#include "benches/suites/decode_experts.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <utility>

#include "engine/runtime/runtime.h"
#include "lm/nn/caches/cache_type.h"
#include "lm/nn/experts/moe.h"
#include "lm/nn/feed_forward/gated_mlp.h"

namespace caldera::bench {
namespace {

constexpr std::int64_t kExpertCount = 64, kHidden = 1024, kExpertWidth = 512;

/// Turns matrices into blocks of q8_0, one after the other.
class ToBlocks final : public ParameterVisitor {
 public:
  void matrix(const std::string& name, Weight& weight) override {
    if (name == "gate.weight") return;
    const Shape shape = weight.tensor.shape();
    const LazyTensor blocks = q8_0_blocks(weight.tensor);
    eval({blocks});
    weight = {.tensor = {},
              .trainable = false,
              .quantized = quantized_tensor({.format = QuantizedFormat::q8_0}, shape, {blocks})};
    weight.quantized.activations = Activations::rounded;
  }
};

std::shared_ptr<ExpertLayers> make_experts(std::int64_t chosen, Device device) {
  std::uint64_t seed = 1;
  const auto matrix = [&](std::int64_t in, std::int64_t out) {
    return std::make_unique<Linear>(in, out, false, 0.02, seed++, device);
  };
  std::vector<std::unique_ptr<Layer>> experts;
  for (std::int64_t e = 0; e < kExpertCount; ++e)
    experts.push_back(std::make_unique<GatedMLP>(matrix(kHidden, kExpertWidth), matrix(kHidden, kExpertWidth),
                                                 matrix(kExpertWidth, kHidden), activation_of("silu")));
  auto layer = std::make_shared<ExpertLayers>(matrix(kHidden, kExpertCount), std::move(experts),
                                              activation_of("silu"), chosen, RoutingWeights::softmax_of_all);
  ToBlocks blocks;
  layer->visit("", blocks);
  layer->materialize();
  layer->set_training(false);
  return layer;
}

Case expert_case(std::int64_t chosen, int threads) {
  Case c;
  c.name = fmt::format("decode/experts/q8_0/{}of{}/t{}", chosen, kExpertCount, threads);
  c.shape = fmt::format("{} experts of {} by {}", kExpertCount, kHidden, kExpertWidth);
  c.threads = threads;
  c.tokens = 1;
  c.yardstick = Yardstick::read_bandwidth;
  c.on_request = true;
  c.make = [=](Device device) {
    const std::shared_ptr<ExpertLayers> layer = make_experts(chosen, device);
    const LazyTensor x = random_input(Shape{1, 1, kHidden}, 7, device);
    Work work;
    work.build = [layer, x] { return std::vector<LazyTensor>{layer->forward(x)}; };
    work.bytes = static_cast<double>(chosen * 3 * kHidden * kExpertWidth) * 34 / 32;
    work.scope = std::make_shared<ThreadScope>(threads);
    return work;
  };
  return c;
}

}  // namespace

std::vector<Case> expert_cases(std::span<const int> threads) {
  std::vector<Case> cases;
  for (const std::int64_t chosen : {std::int64_t{8}, kExpertCount})
    for (const int count : threads) cases.push_back(expert_case(chosen, count));
  return cases;
}

}  // namespace caldera::bench
