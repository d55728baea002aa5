// Products that share a dispatch, and results that are written in the order in which they are read.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <vector>

#include "engine/plan/verify.h"
#include "engine/runtime/evaluate.h"
#include "engine/runtime/runtime.h"
#include "ops/ops.h"
#include "tests/support/devices.h"
#include "tests/support/engine_setup.h"
#include "tests/support/messages.h"

namespace caldera::testing {
namespace {

class SharedDispatchTest : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }

  /// Small distinct values.
  static std::vector<float> values(std::int64_t count, int seed) {
    std::vector<float> all;
    for (std::int64_t i = 0; i < count; ++i)
      all.push_back(static_cast<float>((i * 7 + seed * 13) % 31 - 15) / 16);
    return all;
  }
  LazyTensor leaf(const Shape& shape, int seed) const {
    return LazyTensor::from_vector(values(shape.numel(), seed), shape, GetParam());
  }
};

TEST_P(SharedDispatchTest, ProductsOfDifferentWidths) {
  constexpr std::int64_t kRows = 37, kInner = 45;
  const std::int64_t widths[] = {130, 67, 70, 201};
  const LazyTensor x = leaf({kRows, kInner}, 1);
  std::vector<LazyTensor> outputs;
  for (int i = 0; i < 4; ++i)
    outputs.push_back(matmul(x, leaf({kInner, widths[i]}, 2 + i)) + leaf({widths[i]}, 9 + i));
  {
    const ScopedSettings scope;
    EXPECT_EQ(plan_for(outputs)->dispatch_count(), 1);
  }
  eval(outputs);
  const std::vector<float> a = values(kRows * kInner, 1);
  for (int i = 0; i < 4; ++i) {
    SCOPED_TRACE(widths[i]);
    const std::vector<float> b = values(kInner * widths[i], 2 + i), bias = values(widths[i], 9 + i);
    const std::vector<float> got = outputs[static_cast<std::size_t>(i)].to_vector<float>();
    for (std::int64_t m = 0; m < kRows; ++m) {
      for (std::int64_t n = 0; n < widths[i]; ++n) {
        double sum = bias[static_cast<std::size_t>(n)];
        for (std::int64_t k = 0; k < kInner; ++k)
          sum += double{a[static_cast<std::size_t>(m * kInner + k)]} *
                 b[static_cast<std::size_t>(k * widths[i] + n)];
        ASSERT_NEAR(got[static_cast<std::size_t>(m * widths[i] + n)], sum, 1e-5) << m << ", " << n;
      }
    }
  }
}

TEST_P(SharedDispatchTest, ChainsOfProductsSideBySide) {
  // One chain stands behind the other in the program; step by step they share a dispatch.
  std::vector<LazyTensor> outputs;
  for (int chain = 0; chain < 3; ++chain) {
    LazyTensor h = leaf({33, 96}, chain);
    for (int i = 0; i < 4; ++i) h = matmul(h, leaf({96, 96}, 10 + 4 * chain + i));
    outputs.push_back(h);
  }
  const ScopedSettings scope;
  EXPECT_EQ(plan_for(outputs)->dispatch_count(), 4);
}

TEST_P(SharedDispatchTest, WhatMayBeWrittenOverAnInputStaysBehindTheOtherReaders) {
  std::vector<LazyTensor> inputs, outputs;
  for (int i = 0; i < 4; ++i) {
    inputs.push_back(leaf({64, 64}, i));
    outputs.push_back(sum(matmul(inputs.back(), inputs.back())));
    outputs.push_back(inputs.back() * 0.5);
  }
  const ScopedSettings scope;
  const auto plan = plan_for(outputs);
  std::set<std::int32_t> given;
  for (const Donation& donation : plan->donations) given.insert(donation.input);
  EXPECT_EQ(given.size(), inputs.size());
  if (backend(GetParam()).traits().barriers_cost) {
    EXPECT_EQ(plan->dispatch_count(), 3);
  }
}

TEST_P(SharedDispatchTest, HeadsAreMergedWhereTheyAreWritten) {
  constexpr std::int64_t kBatch = 2, kHeads = 3, kLength = 5, kWidth = 4;
  const LazyTensor x = leaf({kBatch, kHeads, kLength, kWidth}, 1);
  const LazyTensor w = leaf({kHeads * kWidth, 6}, 2);
  const LazyTensor rows = softmax(x);
  const LazyTensor merged = reshape(permute_dims(rows, {0, 2, 1, 3}), {kBatch * kLength, kHeads * kWidth});
  const LazyTensor y = matmul(merged, w);
  {
    const ScopedSettings scope;
    EXPECT_EQ(plan_for({y})->dispatch_count(), 2) << plan_for({y})->to_string();
  }
  const std::vector<float> a = values(x.shape().numel(), 1), b = values(w.shape().numel(), 2);
  const std::vector<float> got = y.to_vector<float>();
  for (std::int64_t i = 0; i < kBatch; ++i) {
    for (std::int64_t t = 0; t < kLength; ++t) {
      for (std::int64_t n = 0; n < 6; ++n) {
        double sum = 0;
        for (std::int64_t h = 0; h < kHeads; ++h) {
          const auto row = static_cast<std::size_t>(((i * kHeads + h) * kLength + t) * kWidth);
          double total = 0;
          for (std::size_t c = 0; c < kWidth; ++c) total += std::exp(double{a[row + c]});
          for (std::size_t c = 0; c < kWidth; ++c)
            sum += std::exp(double{a[row + c]}) / total *
                   b[(static_cast<std::size_t>(h) * kWidth + c) * 6 + static_cast<std::size_t>(n)];
        }
        EXPECT_NEAR(got[static_cast<std::size_t>((i * kLength + t) * 6 + n)], sum, 1e-5);
      }
    }
  }
}

/// A residual, the norm of one token that reads it, and the next product: the norm waits for one dispatch
/// alone.
TEST_P(SharedDispatchTest, ASmallNormFinishesAProduct) {
  constexpr std::int64_t kInner = 48, kWidth = 80, kNext = 24;
  const LazyTensor x = leaf({1, kInner}, 1), w = leaf({kInner, kWidth}, 2), residual = leaf({1, kWidth}, 3);
  const LazyTensor weight = leaf({kWidth}, 4), v = leaf({kWidth, kNext}, 5);
  const LazyTensor sum = matmul(x, w) + residual;
  const LazyTensor y = matmul(rms_norm(sum, 1e-5, weight), v);
  {
    const ScopedSettings scope;
    const auto plan = plan_for({y, sum});
    ASSERT_EQ(plan->steps.size(), 3U) << plan->to_string();
    EXPECT_EQ(plan->dispatch_count(), 2);
    EXPECT_TRUE(plan->steps[1].finishes);
  }
  const std::vector<float> a = values(kInner, 1), b = values(kInner * kWidth, 2), r = values(kWidth, 3);
  const std::vector<float> g = values(kWidth, 4), c = values(kWidth * kNext, 5);
  std::vector<double> h(kWidth);
  double squares = 0;
  for (std::size_t n = 0; n < kWidth; ++n) {
    h[n] = r[n];
    for (std::size_t k = 0; k < kInner; ++k) h[n] += double{a[k]} * b[k * kWidth + n];
    squares += h[n] * h[n];
  }
  const double scale = 1 / std::sqrt(squares / kWidth + 1e-5);
  const std::vector<float> got = y.to_vector<float>();
  for (std::size_t n = 0; n < kNext; ++n) {
    double wanted = 0;
    for (std::size_t k = 0; k < kWidth; ++k) wanted += h[k] * scale * g[k] * c[k * kNext + n];
    EXPECT_NEAR(got[n], wanted, 1e-5) << n;
  }
}

/// Two rows of one region, side by side along the axis that a number moves: one may stand where the other
/// did.
TEST_P(SharedDispatchTest, PartsSideBySideAlongTheMovedAxis) {
  constexpr std::int64_t kLength = 9, kWidth = 8;
  const LazyTensor cache = leaf({kLength, kWidth}, 1), x = leaf({1, kWidth}, 2), y = leaf({1, kWidth}, 3);
  const LazyTensor both = tanh(x * y);
  const LazyTensor out = dynamic_update_slice(cache, concatenate({both + x, both - y}, 0), {5, 0});
  {
    const ScopedSettings scope;
    verify_plan(*plan_for({out}));
  }
  const std::vector<float> a = values(kWidth, 2), b = values(kWidth, 3), got = out.to_vector<float>();
  std::vector<float> wanted = values(kLength * kWidth, 1);
  for (std::size_t c = 0; c < kWidth; ++c) {
    const double t = std::tanh(double{a[c]} * b[c]);
    wanted[5 * kWidth + c] = static_cast<float>(t + a[c]);
    wanted[6 * kWidth + c] = static_cast<float>(t - b[c]);
  }
  for (std::size_t e = 0; e < wanted.size(); ++e) EXPECT_NEAR(got[e], wanted[e], 1e-6) << e;
}

/// Heads of one row, each at a place of its own of a cache, computed by a product and by a region.
TEST_P(SharedDispatchTest, PartsAreWrittenWhereTheyLie) {
  constexpr std::int64_t kHeads = 3, kLength = 9, kWidth = 4, kInner = 16, kColumns = kHeads * kWidth;
  for (const std::int64_t at : {std::int64_t{5}, std::int64_t{0}, std::int64_t{8}}) {
    const LazyTensor cache = leaf({1, kHeads, kLength, kWidth}, 1), x = leaf({1, kInner}, 2);
    const LazyTensor w = leaf({kInner, kColumns}, 3), bias = leaf({kColumns}, 4);
    const auto written = [&](const LazyTensor& row) {
      const LazyTensor heads = permute_dims(reshape(row, {1, 1, kHeads, kWidth}), {0, 2, 1, 3});
      return dynamic_update_slice(cache, heads, {0, 0, at, 0});
    };
    const LazyTensor product = written(matmul(x, w) + bias), region = written(tanh(bias));
    {
      const ScopedSettings scope;
      for (const LazyTensor& one : {product, region}) {
        const auto plan = plan_for({one});
        EXPECT_EQ(plan->steps.size(), 2U) << plan->to_string();  // a copy of the cache, and what writes to it
        verify_plan(*plan);
      }
    }
    const std::vector<float> old = values(cache.shape().numel(), 1), a = values(kInner, 2);
    const std::vector<float> b = values(kInner * kColumns, 3), c = values(kColumns, 4);
    const std::vector<float> got = product.to_vector<float>(), other = region.to_vector<float>();
    for (std::int64_t e = 0; e < cache.shape().numel(); ++e) {
      const auto i = static_cast<std::size_t>(e);
      const auto column = static_cast<std::size_t>(e / (kLength * kWidth) * kWidth + e % kWidth);
      double wanted = old[i], wanted_other = old[i];
      if (e / kWidth % kLength == at) {
        wanted = c[column];
        for (std::size_t k = 0; k < kInner; ++k) wanted += double{a[k]} * b[k * kColumns + column];
        wanted_other = std::tanh(double{c[column]});
      }
      ASSERT_NEAR(got[i], wanted, 1e-5) << e;
      ASSERT_NEAR(other[i], wanted_other, 1e-5) << e;
    }
  }
}

TEST_P(SharedDispatchTest, AGatedPairOfProducts) {
  for (const std::int64_t rows : {std::int64_t{1}, std::int64_t{37}}) {
    constexpr std::int64_t kInner = 48, kWidth = 70;
    const LazyTensor x = leaf({rows, kInner}, 1), b = leaf({kWidth}, 4);
    const LazyTensor gate = matmul(x, leaf({kInner, kWidth}, 2)) + b;
    const LazyTensor y = silu(gate) * matmul(x, leaf({kInner, kWidth}, 3));
    {
      const ScopedSettings scope;
      const auto plan = plan_for({y});
      EXPECT_EQ(plan->dispatch_count(), 1) << plan->to_string();
      EXPECT_EQ(plan->steps.size(), 2U);
    }
    const std::vector<float> a = values(rows * kInner, 1), g = values(kInner * kWidth, 2);
    const std::vector<float> u = values(kInner * kWidth, 3), bias = values(kWidth, 4);
    const std::vector<float> got = y.to_vector<float>();
    for (std::int64_t m = 0; m < rows; ++m) {
      for (std::int64_t n = 0; n < kWidth; ++n) {
        double left = bias[static_cast<std::size_t>(n)], right = 0;
        for (std::int64_t k = 0; k < kInner; ++k) {
          const double factor = a[static_cast<std::size_t>(m * kInner + k)];
          left += factor * g[static_cast<std::size_t>(k * kWidth + n)];
          right += factor * u[static_cast<std::size_t>(k * kWidth + n)];
        }
        ASSERT_NEAR(got[static_cast<std::size_t>(m * kWidth + n)], left / (1 + std::exp(-left)) * right, 1e-4)
            << m << ", " << n;
      }
    }
  }
}

/// The plan of two steps side by side, said to be one dispatch.
Plan joined(const std::vector<LazyTensor>& outputs) {
  const ScopedSettings scope;
  Plan plan = *plan_for(outputs);
  EXPECT_EQ(plan.steps.size(), 2U);
  plan.steps[1].joined = true;
  return plan;
}

TEST(SharedDispatchProof, FindsProductsThatCannotShareADispatch) {
  const auto leaf = [](const Shape& shape, DType type = DType::f32) {
    return LazyTensor::zeros(shape, type, Device::null()).eval().detach();
  };
  const LazyTensor x = leaf({33, 64}), half = leaf({64, 96}, DType::f16);
  const auto product = [&] { return matmul(x, leaf({64, 96})); };  // of a matrix of its own
  verify_plan(joined({product(), product()}));
  const auto fault = [&](const LazyTensor& a, const LazyTensor& b) {
    const Plan plan = joined({a, b});
    return message_of<PlanError>([&] { verify_plan(plan); });
  };
  EXPECT_MENTIONS(fault(product(), tanh(product())), "a product with another epilogue");
  EXPECT_MENTIONS(fault(product(), matmul(x, astype(half, DType::f32))), "a product of other types");
}

TEST(SharedDispatchProof, FindsProductsThatCannotFollow) {
  const auto leaf = [](const Shape& shape) {
    return LazyTensor::zeros(shape, DType::f32, Device::null()).eval().detach();
  };
  const LazyTensor x = leaf({32, 64});
  const LazyTensor gate = matmul(x, leaf({64, 32})) + leaf({32});
  const ScopedSettings scope;
  const Plan plan = *plan_for({silu(gate) * matmul(x, leaf({64, 32}))});
  ASSERT_EQ(plan.steps.size(), 2U);
  ASSERT_TRUE(plan.steps[1].follows);
  verify_plan(plan);
  const auto fault = [&](auto damage) {
    Plan damaged = plan;
    damage(damaged);
    return message_of<PlanError>([&] { verify_plan(damaged); });
  };
  // The epilogue reads the first product transposed, as one that stands by itself, or without being joined.
  EXPECT_MENTIONS(fault([](Plan& p) {
                    p.steps[1].operands[2].strides = {1, 32, 0};
                  }),
                  "no barrier separates");
  EXPECT_MENTIONS(fault([](Plan& p) {
                    p.steps[1].follows = false;
                    p.steps[1].as<ContractStep>().epilogue = p.steps[0].as<ContractStep>().epilogue;
                  }),
                  "no barrier separates");
  EXPECT_MENTIONS(fault([](Plan& p) { p.steps[1].joined = false; }), "not joined");
  EXPECT_MENTIONS(fault([](Plan& p) { p.steps[1].dims = {16, 32, 64}; }), "another space");
}

TEST(SharedDispatchProof, FindsRegionsThatCannotFinish) {
  const auto leaf = [](const Shape& shape) {
    return LazyTensor::zeros(shape, DType::f32, Device::null()).eval().detach();
  };
  const LazyTensor sum = matmul(leaf({1, 64}), leaf({64, 32})) + leaf({32});
  const LazyTensor normed = rms_norm(sum, 1e-5, leaf({32}));
  const ScopedSettings scope;
  const Plan plan = *plan_for({matmul(normed, leaf({32, 16})), sum});
  ASSERT_EQ(plan.steps.size(), 3U);
  ASSERT_TRUE(plan.steps[1].finishes);
  verify_plan(plan);
  const auto fault = [&](auto damage) {
    Plan damaged = plan;
    damage(damaged);
    return message_of<PlanError>([&] { verify_plan(damaged); });
  };
  EXPECT_MENTIONS(fault([](Plan& p) { p.steps[1].barrier_before = false; }), "does not wait for");
  EXPECT_MENTIONS(fault([](Plan& p) { p.steps[2].barrier_before = false; }),
                  "the next one does not wait for");
  EXPECT_MENTIONS(fault([](Plan& p) { p.steps[2].finishes = true; }), "no region");
  EXPECT_MENTIONS(fault([](Plan& p) {
                    p.donations.clear();
                    Step own = p.steps[1];  // a dispatch of its own between the two
                    own.finishes = false;
                    p.steps.insert(p.steps.begin() + 1, own);
                  }),
                  "no product");
}

INSTANTIATE_TEST_SUITE_P(Devices, SharedDispatchTest, ::testing::ValuesIn(tested_devices()),
                         device_test_name);

}  // namespace
}  // namespace caldera::testing
