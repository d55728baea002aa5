// Windows, soft caps and sinks of attention against plain loops, and their gradients against differences.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/caldera.h"
#include "engine/testing/gradcheck.h"
#include "tests/lm/nn/reference.h"
#include "tests/support/devices.h"

namespace caldera::testing {
namespace {

struct Form {
  bool causal = true;
  std::int64_t window = 0;  // 0: none
  std::int64_t offset = 0;
  double softcap = 0;  // 0: none
  bool sinks = false;
};

constexpr std::int64_t kHeads = 4, kGroups = 2, kWidth = 3;

/// q (heads, queries, width), k and v (groups, keys, width).
Doubles attention_form(const Doubles& q, const Doubles& k, const Doubles& v, const Doubles& sinks,
                       std::int64_t queries, std::int64_t keys, const Form& form) {
  Doubles out;
  for (std::int64_t h = 0; h < kHeads; ++h) {
    for (std::int64_t i = 0; i < queries; ++i) {
      std::vector<double> scores(static_cast<std::size_t>(keys), -std::numeric_limits<double>::infinity());
      const std::int64_t group = h / (kHeads / kGroups), at = i + form.offset;
      double total = 0;
      for (std::int64_t j = 0; j < keys; ++j) {
        if (form.causal && j > at) continue;
        if (form.window > 0 && (j <= at - form.window || j >= at + form.window)) continue;
        double s = 0;
        for (std::int64_t d = 0; d < kWidth; ++d)
          s += q[static_cast<std::size_t>((h * queries + i) * kWidth + d)] *
               k[static_cast<std::size_t>((group * keys + j) * kWidth + d)];
        s *= 0.7;
        scores[static_cast<std::size_t>(j)] =
            form.softcap > 0 ? form.softcap * std::tanh(s / form.softcap) : s;
        total += std::exp(scores[static_cast<std::size_t>(j)]);
      }
      if (form.sinks) total += std::exp(sinks[static_cast<std::size_t>(h)]);
      for (std::int64_t d = 0; d < kWidth; ++d) {
        double sum = 0;
        for (std::int64_t j = 0; j < keys; ++j)
          sum += std::exp(scores[static_cast<std::size_t>(j)]) / total *
                 v[static_cast<std::size_t>((group * keys + j) * kWidth + d)];
        out.push_back(sum);
      }
    }
  }
  return out;
}

AttentionOptions options_of(const Form& form, const LazyTensor& sinks) {
  AttentionOptions options{.is_causal = form.causal, .offset = form.offset, .scale = 0.7, .enable_gqa = true};
  if (form.window > 0) options.window = form.window;
  if (form.softcap > 0) options.softcap = form.softcap;
  if (form.sinks) options.sinks = sinks;
  return options;
}

const std::vector<Form> kForms{{.window = 1},
                               {.window = 3},
                               {.window = 3, .offset = 2},
                               {.causal = false, .window = 2},
                               {.softcap = 0.8},
                               {.sinks = true},
                               {.causal = false, .sinks = true},
                               {.window = 2, .offset = 1, .softcap = 1.5, .sinks = true}};

class AttentionForms : public ::testing::TestWithParam<Device> {};

TEST_P(AttentionForms, EqualPlainLoops) {
  CALDERA_REQUIRE_DEVICE(GetParam());
  for (const std::int64_t queries : {1, 5, 70}) {
    const std::int64_t keys = queries + 2;
    const Doubles q = random_doubles(kHeads * queries * kWidth, 1);
    const Doubles k = random_doubles(kGroups * keys * kWidth, 2),
                  v = random_doubles(kGroups * keys * kWidth, 3);
    const Doubles sinks = random_doubles(kHeads, 4);
    const auto on_device = [&](const Doubles& x, const Shape& shape) {
      return LazyTensor::from_vector(std::vector<float>(x.begin(), x.end()), shape, GetParam());
    };
    for (std::size_t f = 0; f < kForms.size(); ++f) {
      const LazyTensor out = scaled_dot_product_attention(
          on_device(q, Shape{kHeads, queries, kWidth}), on_device(k, Shape{kGroups, keys, kWidth}),
          on_device(v, Shape{kGroups, keys, kWidth}), options_of(kForms[f], on_device(sinks, Shape{kHeads})));
      expect_close(out, attention_form(q, k, v, sinks, queries, keys, kForms[f]), 1e-5,
                   "form " + std::to_string(f) + ", queries " + std::to_string(queries));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, AttentionForms, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST(AttentionFormsGradient, EqualDifferences) {
  const std::vector<Shape> shapes{Shape{kHeads, 4, kWidth}, Shape{kGroups, 5, kWidth},
                                  Shape{kGroups, 5, kWidth}, Shape{kHeads}};
  std::vector<Doubles> values;
  for (std::size_t i = 0; i < shapes.size(); ++i) values.push_back(random_doubles(shapes[i].numel(), 40 + i));
  for (const Form& form : kForms) {
    check_gradients(
        [&](std::span<const LazyTensor> in) {
          const LazyTensor out = scaled_dot_product_attention(in[0], in[1], in[2], options_of(form, in[3]));
          return sum(square(out)) + sum(in[3]) * 0.1;
        },
        values, shapes);
  }
}

TEST(AttentionForms, AMaskOfAllKeysAlikeLeavesTheSinkVisible) {
  const Doubles values = random_doubles(4 * 3 * 2, 9);
  const LazyTensor x = LazyTensor::from_vector(std::vector<float>(values.begin(), values.end()), {4, 3, 2});
  for (const LazyTensor& mask : {zeros({3, 1}, DType::boolean), full({3, 1}, -1e9)}) {
    AttentionOptions options{.mask = mask};
    options.sinks = zeros({4});
    // All weight is the sink's, whose value is 0.
    for (const float y : scaled_dot_product_attention(x, x, x, options).to_vector<float>())
      EXPECT_NEAR(y, 0, 1e-6);
  }
}

TEST(AttentionFormsErrors, AreRefused) {
  const LazyTensor q = zeros({4, 2, 3}), k = zeros({2, 5, 3});
  const auto attend = [&](const AttentionOptions& options) {
    scaled_dot_product_attention(q, k, k, options);
  };
  EXPECT_THROW(attend({.window = 0, .enable_gqa = true}), ValueError);
  EXPECT_THROW(attend({.softcap = -1.0, .enable_gqa = true}), ValueError);
  EXPECT_THROW(attend({.mask = ones({2, 5}, DType::boolean), .window = 2, .enable_gqa = true}), ValueError);
  EXPECT_THROW(attend({.sinks = zeros({3}), .enable_gqa = true}), ShapeError);
  EXPECT_THROW(attend({.sink_key = true, .enable_gqa = true}), ValueError);
}

}  // namespace
}  // namespace caldera::testing
