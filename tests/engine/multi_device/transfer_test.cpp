// to(): values, gradients and errors of graphs that cross devices, and what they become.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "engine/explain/records.h"
#include "engine/runtime/evaluate.h"
#include "engine/runtime/profiler.h"
#include "tests/engine/multi_device/two_devices.h"
#include "tests/support/plans/named_programs.h"

namespace caldera::testing {
namespace {

using Floats = std::vector<float>;
using Tensors = std::vector<LazyTensor>;

class Transfer : public TwoDevices {};
INSTANTIATE_TEST_SUITE_P(Fusion, Transfer, ::testing::Bool(), fusion_name);

TEST_P(Transfer, BringsEveryValueToEveryDevice) {
  const Floats floats{1.5F, -2, 0.25F, 3, -0.0F, 1e30F, -7};
  const std::vector<std::int64_t> longs{1, -2, std::int64_t{1} << 40, 0, 5};
  for (Device from : all()) {
    for (Device there : all()) {
      SCOPED_TRACE(from.to_string() + " to " + there.to_string());
      const LazyTensor x = LazyTensor::from_vector(floats, {7}, from);
      const LazyTensor moved = x.to(there);
      EXPECT_EQ(moved.device(), there);
      EXPECT_EQ(moved.shape(), x.shape());
      EXPECT_EQ(moved.is_evaluated(), from == there) << "nothing moves before it is asked for";
      EXPECT_EQ(moved.to_vector<float>(), floats);
      EXPECT_EQ(moved.node().value().storage->device(), there);
      EXPECT_EQ(to(LazyTensor::from_vector(longs, {5}, from), there).to_vector<std::int64_t>(), longs);
      EXPECT_EQ(to(LazyTensor::from_vector(Floats{}, {0, 4}, from), there).to_vector<float>(), Floats{});
      // Computed on one side and used on the other.
      const LazyTensor sum = (x * 2.0).to(there) + LazyTensor::ones({7}, DType::f32, there);
      Floats wanted;
      for (float v : floats) wanted.push_back(v * 2 + 1);
      EXPECT_EQ(sum.to_vector<float>(), wanted);
    }
  }
}

TEST_P(Transfer, LargeTensorsGoInPieces) {
  Floats values((std::size_t{9} << 20) / 4 + 77);  // more than one piece between two GPUs
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 8191);
  const LazyTensor x = LazyTensor::from_vector(values, {static_cast<std::int64_t>(values.size())}, first());
  EXPECT_EQ(x.to(second()).to(cpu()).to_vector<float>(), values);
}

TEST_P(Transfer, NumbersFitEveryDevice) {
  const LazyTensor two = to(2.0, second());
  EXPECT_EQ((program_input({3}, second()) * two).device(), second());
  EXPECT_EQ(LazyTensor(two).item<float>(), 2.0F);
}

TEST_P(Transfer, AChainBackAndForth) {
  LazyTensor x = program_input({5, 5}, cpu());
  LazyTensor y = x;
  LazyTensor wanted = x;
  for (int hop = 0; hop < 40; ++hop) {
    const Device there = all()[static_cast<std::size_t>(hop * 7 % 3)];
    y = tanh(y.to(there) + 0.125);
    wanted = tanh(wanted + 0.125);
  }
  const Floats got = y.to(cpu()).to_vector<float>();
  const Floats expected = wanted.to_vector<float>();
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-5F) << i;
}

TEST_P(Transfer, ADiamondAndAllItsCornersAtOnce) {
  const LazyTensor x = program_input({6, 4}, cpu());
  const LazyTensor top = exp(x);
  const LazyTensor left = top.to(first()) * 3.0;
  const LazyTensor right = sin(top.to(second()));
  const LazyTensor bottom = left.to(second()) - right;
  const LazyTensor back = bottom.to(cpu()) + top;
  eval({back, left, top, bottom, right});
  const Floats in = x.to_vector<float>();
  const Floats l = left.to_vector<float>(), r = right.to_vector<float>(), b = bottom.to_vector<float>(),
               t = top.to_vector<float>(), end = back.to_vector<float>();
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double e = std::exp(static_cast<double>(in[i]));
    EXPECT_NEAR(t[i], e, 1e-5);
    EXPECT_NEAR(l[i], 3 * e, 1e-5);
    EXPECT_NEAR(r[i], std::sin(e), 1e-5);
    EXPECT_NEAR(b[i], 3 * e - std::sin(e), 2e-5);
    EXPECT_NEAR(end[i], 4 * e - std::sin(e), 3e-5);
  }
}

/// Two layers; the second one, and half of the loss, on `there`.
Tensors loss_and_gradients(Device here, Device there) {
  const LazyTensor x = program_input({9, 5}, here);
  const LazyTensor w = program_input({5, 7}, here, 0.3F);
  const LazyTensor v = program_input({7, 3}, there, -0.2F);
  const LazyTensor hidden = silu(matmul(x, w));
  const LazyTensor out = softmax(matmul(hidden.to(there), v));
  const LazyTensor loss = mean(square(out.to(here))) + sum(square(hidden)) + sum(out * out).to(here);
  Tensors all{loss};
  for (const LazyTensor& g : grad(loss, {x, w, v})) all.push_back(g);
  return all;
}

TEST_P(Transfer, GradientsComeBack) {
  const Tensors wanted = loss_and_gradients(cpu(), cpu());
  const std::vector<std::pair<Device, Device>> placements{
      {cpu(), first()}, {first(), cpu()}, {first(), second()}, {second(), first()}};
  for (const auto& [here, there] : placements) {
    SCOPED_TRACE(here.to_string() + " and " + there.to_string());
    const Tensors got = loss_and_gradients(here, there);
    EXPECT_EQ(got[1].device(), here);
    EXPECT_EQ(got[3].device(), there);
    eval(got);
    for (std::size_t k = 0; k < got.size(); ++k) {
      const Floats a = got[k].to_vector<float>(), b = wanted[k].to_vector<float>();
      for (std::size_t i = 0; i < a.size(); ++i)
        EXPECT_NEAR(a[i], b[i], 1e-4 * std::max(1.0F, std::abs(b[i]))) << "output " << k << " element " << i;
    }
  }
}

TEST_P(Transfer, ValueAndGradCrossesToo) {
  const LazyTensor x = program_input({4}, first());
  const auto [value, grads] = value_and_grad(
      [](std::span<const LazyTensor> a) { return sum(square(a[0].to(Device::cpu()).to(Device::vulkan(1)))); },
      {&x, 1});
  EXPECT_EQ(value.device(), second());
  EXPECT_EQ(grads[0].device(), first());
  const Floats in = x.to_vector<float>(), g = grads[0].to_vector<float>();
  for (std::size_t i = 0; i < in.size(); ++i) EXPECT_FLOAT_EQ(g[i], 2 * in[i]);
}

TEST_P(Transfer, WhatIsHeldIsKeptAndCanBeDifferentiated) {
  const LazyTensor x = program_input({4}, cpu());
  const LazyTensor moved = (x * 3.0).to(first());
  const LazyTensor y = (moved + 1.0).eval();
  EXPECT_TRUE(moved.is_evaluated());
  const LazyTensor g = grad(sum(square(moved)), x);
  const Floats in = x.to_vector<float>(), slope = g.to_vector<float>();
  for (std::size_t i = 0; i < in.size(); ++i) EXPECT_FLOAT_EQ(slope[i], 18 * in[i]);
}

TEST_P(Transfer, AnotherTimeIsTheSamePlans) {
  const auto run = [](float start) {
    const LazyTensor x = program_input({8}, Device::cpu(), start);
    const LazyTensor y = exp(x).to(Device::vulkan(0)) * 2.0 + sin(x).to(Device::vulkan(0));
    return y.to(Device::vulkan(1)) + 1.0;
  };
  run(0.5F).eval();
  const PlanCacheStats before = plan_cache_stats();
  run(0.7F).eval();
  const PlanCacheStats after = plan_cache_stats();
  EXPECT_EQ(after.misses, before.misses);
  EXPECT_EQ(after.hits, before.hits + 3) << "a plan for each of three devices";
}

TEST_P(Transfer, EqualGraphsOnTwoDevicesHaveTheirOwnPlans) {
  const auto run = [](Device device) { (tanh(program_input({3, 11}, device)) * 5.0).eval(); };
  run(first());
  const auto misses = plan_cache_stats().misses;
  run(second());
  EXPECT_EQ(plan_cache_stats().misses, misses + 1);
  run(first());
  run(second());
  EXPECT_EQ(plan_cache_stats().misses, misses + 1);
}

TEST_P(Transfer, WhatIsMovedTwiceIsCopiedOnce) {
  const LazyTensor x = program_input({100}, cpu());
  const LazyTensor e = exp(x);
  const Profiler profiler;
  const LazyTensor y = e.to(first()) + e.to(first()) * 2.0;
  y.eval();
  ASSERT_EQ(profiler.copies().size(), 1U);
  EXPECT_EQ(profiler.copies()[0].bytes, 400U);
  EXPECT_EQ(profiler.runs().size(), 2U);
}

TEST_P(Transfer, WorkThatDoesNotWaitForACopyIsNotCutBehindIt) {
  // `scaled` is needed beside what comes back, and nobody else waits for it: it fuses with its reader there.
  const LazyTensor x = program_input({64}, first());
  const Profiler profiler;
  const LazyTensor scaled = cos(x) * 3.0;
  ((exp(x).to(second()) + 1.0).to(first()) * scaled).eval();
  const auto runs = profiler.runs();
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0]->plan->output_count, 1);
  EXPECT_EQ(runs[2]->plan->steps.size(), GetParam() ? 1U : 3U) << "cos, times 3, times what came back";
}

TEST_P(Transfer, OperandsOnDifferentDevicesAreStillAnError) {
  const LazyTensor a = program_input({2, 2}, first()), b = program_input({2, 2}, second());
  try {
    const LazyTensor c = matmul(a, b);
    FAIL() << "no error";
  } catch (const DeviceError& error) {
    const std::string text = error.what();
    for (const char* part : {"matmul", "vulkan:0", "vulkan:1", "(2, 2)", "to()"})
      EXPECT_NE(text.find(part), std::string::npos) << text;
  }
}

TEST_P(Transfer, ADeviceThatIsNotThereIsNamedAndNothingIsLost) {
  const LazyTensor x = program_input({3}, cpu());
  const LazyTensor e = exp(x);
  const LazyTensor y = e.to(Device::vulkan(77)) + 1.0;
  try {
    y.eval();
    FAIL() << "no error";
  } catch (const DeviceError& error) {
    EXPECT_NE(std::string(error.what()).find("vulkan:77"), std::string::npos) << error.what();
  }
  EXPECT_FALSE(e.node().has_value());
  EXPECT_FLOAT_EQ(e.to_vector<float>()[0], std::exp(x.to_vector<float>()[0]));
}

TEST_P(Transfer, OnePlanForSeveralDevicesIsAnError) {
  const LazyTensor y = exp(program_input({3}, cpu())).to(first()) + 1.0;
  EXPECT_THROW(plan_for({y}), ValueError);
}

}  // namespace
}  // namespace caldera::testing
