// Tokens generated within the graph, against generate().
#include <gtest/gtest.h>

#include <vector>

#include "engine/caldera.h"
#include "lm/generate/generator.h"
#include "lm/models/llama.h"
#include "lm/nn/attention/attention.h"
#include "tests/support/devices.h"
#include "tests/support/tiny_llama.h"

namespace caldera::testing {
namespace {

using Tensors = std::vector<LazyTensor>;

/// Keys and values of the layers, (1, heads, room, head_dim), with a place for the token at `position`.
class LoopCache final : public AttentionCache {
 public:
  LoopCache(const LazyTensor& position, std::span<const LazyTensor> kept)
      : state(kept.begin(), kept.end()), position_(position), room_(kept[0].shape(2)) {}
  void begin(std::int64_t, std::int64_t) override {}
  void finish() override {}
  TokenPositions positions() const override {
    return {.length = 1, .rows = reshape(position_, Shape{1, 1}), .reach = room_, .longest = room_};
  }
  AttendedKeys attended(std::int64_t layer, const LazyTensor& k, const LazyTensor& v,
                        const AttentionForm&) override {
    const LazyTensor places = reshape(arange(room_, DType::i32, k.device()), Shape{1, 1, room_, 1});
    LazyTensor &keys = state[2 * layer], &values = state[2 * layer + 1];
    keys = where(equal(places, position_), k, keys);
    values = where(equal(places, position_), v, values);
    return {keys, values, reshape(less_equal(places, position_), Shape{1, 1, 1, room_})};
  }
  Tensors state;

 private:
  LazyTensor position_;
  std::int64_t room_;
};

class LoopGeneration : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};
INSTANTIATE_TEST_SUITE_P(Devices, LoopGeneration, ::testing::ValuesIn(tested_devices()),
                         [](const auto& each) {
                           return each.param.kind == DeviceKind::vulkan ? "vulkan" : "cpu";
                         });

/// A while_loop whose turn runs the model on one token. Keys and values of earlier tokens go round with it,
/// and so do the tokens; the host looks at the end.
TEST_P(LoopGeneration, AWhileLoopGeneratesWhatGenerateDoes) {
  Llama model(tiny_llama({.vocabulary = 64, .initializer_range = 0.4}), GetParam(), 7);
  model.materialize();
  model.set_training(false);
  const ModelConfig& config = model.config();
  const std::vector<std::int32_t> prompt{5, 17, 3};
  const auto begin = static_cast<std::int64_t>(prompt.size());
  const std::int64_t length = 24;
  GenerateOptions options;
  options.max_tokens = length - begin;
  const std::vector<std::int32_t> all = generate(model, prompt, options).ids;
  ASSERT_EQ(std::ssize(all), length - begin);
  // Without an end, and with one in the middle.
  for (const std::int32_t stop : {-1, all[9]}) {
    options.stop_ids = {};
    if (stop >= 0) options.stop_ids = {stop};
    std::vector<std::int32_t> ids = prompt;
    ids.resize(length);
    Tensors start{zeros({}, DType::i32, GetParam()), LazyTensor::from_vector(ids, Shape{length}, GetParam())};
    for (int i = 0; i < 2 * config.num_hidden_layers; ++i) {
      start.push_back(
          zeros(Shape{1, config.num_key_value_heads, length, config.head_dim}, DType::f32, GetParam()));
    }
    const auto token = [](std::span<const LazyTensor> x) { return take(x[1], reshape(x[0], Shape{1}), 0); };
    const auto goes_on = [&](std::span<const LazyTensor> x) {
      return logical_and(less(x[0], length - 1), logical_or(less(x[0], begin), not_equal(token(x), stop)));
    };
    const auto turn = [&](std::span<const LazyTensor> x) {
      LoopCache cache(x[0], x.subspan(2));
      const LazyTensor logits = model(reshape(token(x), Shape{1, 1}), &cache);
      const LazyTensor best = astype(argmax(reshape(logits, Shape{config.vocab_size}), 0), DType::i32);
      const LazyTensor places = arange(length, DType::i32, GetParam());
      // The prompt stays as it is.
      const LazyTensor is_next = logical_and(equal(places, x[0] + 1), greater_equal(places, begin));
      Tensors next{x[0] + 1, where(is_next, best, x[1])};
      next.insert(next.end(), cache.state.begin(), cache.state.end());
      return next;
    };
    const Tensors end = while_loop(goes_on, turn, start);
    ids = end[1].to_vector<std::int32_t>();
    ids = {ids.begin() + begin, ids.begin() + end[0].item<std::int32_t>() + 1};
    EXPECT_EQ(ids, generate(model, prompt, options).ids) << "until " << stop;
  }
}

}  // namespace
}  // namespace caldera::testing
