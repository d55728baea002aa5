// scaled_dot_product_attention is written in the form that the compiler recognises.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/engine_setup.h"
#include "tests/support/plans/named_programs.h"

namespace caldera::testing {
namespace {

using Names = std::vector<std::string>;

Names step_labels(const std::vector<LazyTensor>& outputs) {
  const ScopedSettings scope;
  Names out;
  const auto plan = plan_for(outputs);
  for (const Step& step : plan->steps) out.push_back(step.label);
  return out;
}

TEST(AttentionStructure, HoldsNoScores) {
  const Device n = Device::null();
  const LazyTensor q = program_input({2, 4, 33, 16}, n), bias = program_input({33, 40}, n, 3);
  for (const bool gqa : {false, true}) {
    const Shape shape{2, gqa ? 2 : 4, 40, 16};
    const LazyTensor k = program_input(shape, n, 1), v = program_input(shape, n, 2);
    const auto steps = [&](AttentionOptions options) {
      options.enable_gqa = gqa;
      return step_labels({scaled_dot_product_attention(q, k, v, options)});
    };
    EXPECT_EQ(steps({}), Names{"attention"});
    EXPECT_EQ(steps({.is_causal = true}), Names{"attention"});
    EXPECT_EQ(steps({.mask = bias, .scale = 0.5}), Names{"attention"});
    EXPECT_EQ(steps({.mask = greater(bias, 0.0)}).back(), "attention");
  }
}

/// Probabilities, turned, times what is no gradient of the output: of as many columns, and of others.
TEST(AttentionStructure, TurnedProbabilitiesMeetAnyMatrix) {
  for (const std::int64_t columns : {1, 5, 8, 12, 24}) {
    const auto values = [&](bool fusion) {
      const ScopedSettings scope(fusion);
      const LazyTensor q = random_normal({2, 9, 8}, 1).eval(), k = random_normal({2, 9, 8}, 2).eval(),
                       v = random_normal({2, 9, 8}, 3).eval(), b = random_normal({2, 9, columns}, 4).eval();
      const LazyTensor p = softmax(matmul(q, transpose(k)), -1);
      const LazyTensor o = matmul(p, v), other = matmul(transpose(p), b);
      eval({o, other});
      std::vector<float> all = o.to_vector<float>();
      const std::vector<float> more = other.to_vector<float>();
      all.insert(all.end(), more.begin(), more.end());
      return all;
    };
    const auto fused = values(true), plain = values(false);
    for (std::size_t i = 0; i < plain.size(); ++i)
      ASSERT_NEAR(fused[i], plain[i], 1e-5F) << columns << " columns, element " << i;
  }
}

/// Its plan names the scores by nodes, to which passes behind the one that finds attention give other
/// numbers.
TEST(AttentionStructure, StaysOneBesideTransposesOfProducts) {
  for (const bool causal : {false, true}) {
    const auto gradients = [&](bool fusion) {
      const ScopedSettings scope(fusion);
      const LazyTensor x = random_normal({2, 3, 20, 8}, 1).eval(), bias = random_normal({20, 20}, 2).eval();
      std::vector<LazyTensor> weights;
      for (std::uint64_t i = 0; i < 6; ++i) weights.push_back((0.3 * random_normal({8, 8}, 3 + i)).eval());
      const auto block = [&](const LazyTensor& in, std::size_t first) {
        const auto through = [&](std::size_t i) { return matmul(in, transpose(weights[first + i])); };
        return scaled_dot_product_attention(
            through(0), through(1), through(2),
            causal ? AttentionOptions{.is_causal = true} : AttentionOptions{.mask = bias});
      };
      const LazyTensor y = block(block(x, 0), 3);
      std::vector<LazyTensor> all = grad(sum(y * y), weights);
      all.push_back(transpose(matmul(y, transpose(y))));
      if (fusion) {
        const auto labels = step_labels(all);
        EXPECT_TRUE(std::ranges::any_of(labels, [](const auto& l) { return l.starts_with("attention"); }));
      }
      eval(all);
      std::vector<std::vector<float>> values;
      for (const LazyTensor& t : all) values.push_back(t.to_vector<float>());
      return values;
    };
    const auto fused = gradients(true), plain = gradients(false);
    for (std::size_t t = 0; t < plain.size(); ++t) {
      float most = 0;
      for (float v : plain[t]) most = std::max(most, std::abs(v));
      for (std::size_t i = 0; i < plain[t].size(); ++i)
        ASSERT_NEAR(fused[t][i], plain[t][i], 1e-5F * most) << "tensor " << t << ", element " << i;
    }
  }
}

}  // namespace
}  // namespace caldera::testing
