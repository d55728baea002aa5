// Attention of operands in bf16, whose products go by pairs of numbers where the processor has such
// instructions, beside its formula in double: the output and all gradients, at sizes around those of tiles.
// Of operands in bf16 that are widened first, whose results are f32, weights are not rounded.
// Gradients one after the other, and together, which one walk makes where there are heads for all cores.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include "engine/caldera.h"
#include "ops/ops.h"

namespace caldera::testing {
namespace {

/// (heads, rows, columns) of numbers in bf16.
struct Heads {
  std::int64_t heads, rows, columns;
  std::vector<float> values;

  Heads(std::int64_t heads_of, std::int64_t rows_of, std::int64_t columns_of, std::uint32_t seed)
      : heads(heads_of), rows(rows_of), columns(columns_of) {
    for (std::int64_t i = 0; i < heads * rows * columns; ++i) {
      seed = seed * 1664525U + 1013904223U;
      // Five bits and a sign, which bf16 has exactly.
      values.push_back((static_cast<float>(seed >> 27) - 15.5F) / 16.0F);
    }
  }
  double at(std::int64_t h, std::int64_t r, std::int64_t c) const {
    return static_cast<double>(values[static_cast<std::size_t>((h * rows + r) * columns + c)]);
  }
  /// In bf16 in memory, and of the type.
  LazyTensor tensor(DType type) const {
    const LazyTensor x = LazyTensor::from_vector(values, {heads, rows, columns}, Device::cpu());
    return astype(astype(x, DType::bf16).eval(), type);
  }
};

/// A sum, and what its terms add up to without their signs.
struct Sum {
  double value = 0, size = 0;
  void add(double term) { add(term, std::abs(term)); }
  void add(double term, double size_of_term) {
    value += term;
    size += size_of_term;
  }
};

void check_pairs(std::int64_t queries, std::int64_t keys, std::int64_t width, bool causal,
                 DType type = DType::bf16) {
  SCOPED_TRACE(::testing::Message() << queries << " queries, " << keys << " keys of " << width
                                    << (causal ? ", causal " : " ") << name(type));
  const std::int64_t heads = 2 * std::max(1U, std::thread::hardware_concurrency());
  const Heads q(heads, queries, width, 1), k(heads, keys, width, 2), v(heads, keys, width, 3),
      go(heads, queries, width, 4);
  const double scale = 0.125;  // a power of two
  const auto results = [&](bool together) {
    const LazyTensor tq = q.tensor(type), tk = k.tensor(type), tv = v.tensor(type);
    LazyTensor scores = matmul(tq, transpose(tk)) * scale;
    if (causal)
      scores = where(iota({queries, keys}, 0, DType::i32, Device::cpu()) >=
                         iota({queries, keys}, 1, DType::i32, Device::cpu()),
                     scores, -1e9);
    const LazyTensor out = matmul(softmax(scores), tv);
    const LazyTensor operands[] = {tq, tk, tv};
    std::vector<LazyTensor> all = grad(sum(astype(out * go.tensor(type), DType::f32)), operands);
    all.insert(all.begin(), out);
    if (together) eval(all);
    std::vector<std::vector<float>> found;
    found.reserve(all.size());
    for (const LazyTensor& x : all) found.push_back(astype(x, DType::f32).to_vector<float>());
    return found;
  };

  std::vector<Sum> expected[4];
  for (std::size_t i = 0; i < 4; ++i) expected[i].resize((i < 2 ? q : k).values.size());
  const auto place = [&](std::int64_t h, std::int64_t rows, std::int64_t r, std::int64_t d) {
    return static_cast<std::size_t>((h * rows + r) * width + d);
  };
  for (std::int64_t h = 0; h < heads; ++h)
    for (std::int64_t m = 0; m < queries; ++m) {
      const std::int64_t seen = causal ? std::min(keys, m + 1) : keys;
      std::vector<double> p(static_cast<std::size_t>(seen)), dp_size(p.size());
      std::vector<double> dp(p.size());
      double total = 0, delta = 0, delta_size = 0;
      for (std::int64_t n = 0; n < seen; ++n) {
        double score = 0;
        for (std::int64_t d = 0; d < width; ++d) score += q.at(h, m, d) * k.at(h, n, d);
        total += p[static_cast<std::size_t>(n)] = std::exp(score * scale);
      }
      for (std::size_t n = 0; n < p.size(); ++n) {
        p[n] /= total;
        for (std::int64_t d = 0; d < width; ++d) {
          const double term = go.at(h, m, d) * v.at(h, static_cast<std::int64_t>(n), d);
          dp[n] += term;
          dp_size[n] += std::abs(term);
        }
        delta += p[n] * dp[n];
        delta_size += p[n] * dp_size[n];
      }
      for (std::size_t i = 0; i < p.size(); ++i) {
        const auto n = static_cast<std::int64_t>(i);
        const double ds = p[i] * (dp[i] - delta) * scale;
        const double ds_size = p[i] * (dp_size[i] + delta_size) * scale;
        for (std::int64_t d = 0; d < width; ++d) {
          expected[0][place(h, queries, m, d)].add(p[i] * v.at(h, n, d));
          expected[1][place(h, queries, m, d)].add(ds * k.at(h, n, d), ds_size * std::abs(k.at(h, n, d)));
          expected[2][place(h, keys, n, d)].add(ds * q.at(h, m, d), ds_size * std::abs(q.at(h, m, d)));
          expected[3][place(h, keys, n, d)].add(p[i] * go.at(h, m, d));
        }
      }
    }
  // Weights and results in bf16 are rounded to 2^-9 of their size; scores too, where nothing is fused.
  const double rounding = std::exp2(type == DType::bf16 ? -9 : -17);
  const char* names[] = {"output", "of q", "of k", "of v"};
  for (const bool together : {false, true}) {
    const std::vector<std::vector<float>> found = results(together);
    for (std::size_t i = 0; i < 4; ++i) {
      ASSERT_EQ(found[i].size(), expected[i].size());
      for (std::size_t e = 0; e < found[i].size(); ++e)
        ASSERT_NEAR(static_cast<double>(found[i][e]), expected[i][e].value,
                    4 * rounding * expected[i][e].size + 1e-6)
            << names[i] << " " << e << (together ? ", together" : "");
    }
  }
}

TEST(CpuAttentionPairs, AgreesWithTheFormulaAndItsGradients) {
  for (const bool causal : {false, true}) {
    check_pairs(64, 64, 64, causal);
    check_pairs(13, 13, 8, causal);
    check_pairs(71, 71, 40, causal);
    check_pairs(130, 130, 33, causal);
  }
  check_pairs(9, 600, 16, false);
  check_pairs(600, 31, 16, false);
  check_pairs(3, 40, 64, false);
}

TEST(CpuAttentionPairs, WeightsOfWiderResultsAreNotRounded) {
  for (const bool causal : {false, true}) {
    check_pairs(13, 13, 8, causal, DType::f32);
    check_pairs(71, 71, 40, causal, DType::f32);
  }
}

}  // namespace
}  // namespace caldera::testing
