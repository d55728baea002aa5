// scaled_dot_product_attention is written in the form that the compiler recognises.
#include <gtest/gtest.h>

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

}  // namespace
}  // namespace caldera::testing
