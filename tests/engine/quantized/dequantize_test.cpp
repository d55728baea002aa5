// What the bits of every format stand for, on every device and in the reference interpreter.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

#include "tests/engine/quantized/golden_matrices.h"

namespace caldera::testing {
namespace {

class QuantizedValues : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, QuantizedValues, ::testing::ValuesIn(op_settings()), op_setting_name);

/// Bits, the sign of 0 among them, but that one NaN is like another.
void expect_bits(const std::vector<float>& got, const std::vector<float>& want, const std::string& what,
                 bool may_flush = false) {
  ASSERT_EQ(got.size(), want.size()) << what;
  for (std::size_t i = 0; i < want.size(); ++i) {
    if (std::isnan(want[i]) ? std::isnan(got[i])
                            : std::bit_cast<std::uint32_t>(got[i]) == std::bit_cast<std::uint32_t>(want[i]))
      continue;
    if (may_flush && std::fpclassify(want[i]) == FP_SUBNORMAL && got[i] == 0) continue;
    ADD_FAILURE() << fmt::format("{}, weight {}: {:a}, want {:a}", what, i, got[i], want[i]);
    return;
  }
}

TEST(QuantizedFormats, AllHaveGoldenMatrices) {
  std::set<QuantizedFormat> formats;
  for (const GoldenMatrix& m : golden_matrices()) formats.insert(m.layout.format);
  EXPECT_EQ(formats.size(), static_cast<std::size_t>(kQuantizedFormatCount));
}

TEST(QuantizedFormats, HaveTheNumbersOfGguf) {
  EXPECT_EQ(quantized_format_of_ggml(2), QuantizedFormat::q4_0);
  EXPECT_EQ(quantized_format_of_ggml(12), QuantizedFormat::q4_k);
  EXPECT_EQ(quantized_format_of_ggml(39), QuantizedFormat::mxfp4);
  EXPECT_EQ(quantized_format_of_ggml(-1), std::nullopt);
  EXPECT_EQ(quantized_format_of_ggml(0), std::nullopt);
}

TEST_P(QuantizedValues, DequantizeIsExact) {
  for (const GoldenMatrix& m : golden_matrices())
    expect_bits(dequantize(upload(m, device())).to_vector<float>(), m.weights, m.name);
}

/// A GPU may take a weight below the least normal number for 0, but none that a subnormal scale makes larger.
TEST_P(QuantizedValues, AreExactAtTheEndsOfTheirScales) {
  ASSERT_FALSE(golden_edges().empty());
  for (const GoldenMatrix& m : golden_edges())
    expect_bits(dequantize(upload(m, device())).to_vector<float>(), m.weights, m.name, is_vulkan());
}

TEST_P(QuantizedValues, RowsOfATableAreExactAtTheEndsOfTheirScales) {
  for (const GoldenMatrix& m : golden_edges()) {
    const LazyTensor ids = LazyTensor::from_vector<std::int32_t>({1, 0}, Shape{2}, device());
    const std::int64_t columns = m.shape[1];
    std::vector<float> want(m.weights.begin() + columns, m.weights.begin() + 2 * columns);
    want.insert(want.end(), m.weights.begin(), m.weights.begin() + columns);
    expect_bits(quantized_embedding(upload(m, device()), ids).to_vector<float>(), want, m.name, is_vulkan());
  }
}

/// The product with 1 in one place picks a weight (or 0 times one that is no number).
TEST_P(QuantizedValues, ProductsUseTheSameWeights) {
  for (const GoldenMatrix& m : golden_edges()) {
    for (const std::int64_t rows : {1, 5, 40}) {
      const std::int64_t columns = m.shape[1];
      std::vector<float> x(static_cast<std::size_t>(rows * columns), 0);
      for (std::int64_t r = 0; r < rows; ++r) x[static_cast<std::size_t>(r * columns + r)] = 1;
      const auto got =
          quantized_matmul(LazyTensor::from_vector(x, Shape{rows, columns}, device()), upload(m, device()))
              .to_vector<float>();
      for (std::int64_t n = 0; n < m.shape[0]; ++n) {
        const auto begin = m.weights.begin() + n * columns;
        const bool finite = std::all_of(begin, begin + columns, [](float w) { return std::isfinite(w); });
        for (std::int64_t r = 0; r < rows; ++r) {
          const float value = got[static_cast<std::size_t>(r * m.shape[0] + n)], want = begin[r];
          if (!finite) {
            EXPECT_TRUE(std::isnan(value)) << m.name << ", row " << n << ", column " << r << " of " << rows;
          } else if (std::fpclassify(want) != FP_SUBNORMAL) {
            EXPECT_EQ(value, want) << m.name << ", row " << n << ", column " << r << " of " << rows;
          }
        }
      }
    }
  }
}

TEST_P(QuantizedValues, DequantizeRoundsToHalfTypes) {
  for (const GoldenMatrix& m : golden_matrices()) {
    if (m.layout.format == QuantizedFormat::fp8_e4m3) continue;  // NaN among them
    std::vector<double> want(m.weights.begin(), m.weights.end());
    EXPECT_TRUE(agrees(dequantize(upload(m, device()), DType::bf16), Host(m.shape, want), {})) << m.name;
  }
}

TEST_P(QuantizedValues, EmbeddingTakesRows) {
  for (const GoldenMatrix& m : golden_matrices()) {
    const LazyTensor ids = LazyTensor::from_vector<std::int32_t>({2, 0, 3, 2, -1, 1}, Shape{2, 3}, device());
    const LazyTensor rows = quantized_embedding(upload(m, device()), ids);
    const std::int64_t columns = m.shape[1];
    ASSERT_EQ(rows.shape(), (Shape{2, 3, columns})) << m.name;
    std::vector<float> want;
    for (const int row : {2, 0, 3, 2, -1, 1}) {
      for (std::int64_t k = 0; k < columns; ++k)
        want.push_back(row < 0 || row > 2 ? NAN : m.weights[static_cast<std::size_t>(row * columns + k)]);
    }
    expect_bits(rows.to_vector<float>(), want, m.name);
  }
}

TEST_P(QuantizedValues, PartsMayBeViews) {
  // Rows 1 and 2 of a matrix, whose blocks then begin anywhere, and one whose bytes are turned.
  for (const GoldenMatrix& m : golden_matrices()) {
    if (m.parts.size() != 1 || m.parts[0].type != DType::u8) continue;
    const LazyTensor blocks = upload(m, device()).parts[0];
    const std::int64_t bytes = blocks.shape(1);
    const QuantizedTensor lower = quantized_tensor(m.layout, Shape{2, m.shape[1]}, {slice(blocks, 0, 1, 3)});
    std::vector<std::uint8_t> columns_first;
    for (std::int64_t i = 0; i < bytes; ++i) {
      for (std::int64_t row = 0; row < 3; ++row)
        columns_first.push_back(m.parts[0].bytes[static_cast<std::size_t>(row * bytes + i)]);
    }
    const LazyTensor columns = LazyTensor::from_vector(columns_first, Shape{bytes, 3}, device());
    const QuantizedTensor turned = quantized_tensor(m.layout, m.shape, {transpose(columns)});
    const auto begin = m.weights.begin() + m.shape[1];
    expect_bits(dequantize(lower).to_vector<float>(), {begin, m.weights.end()}, m.name);
    expect_bits(dequantize(turned).to_vector<float>(), m.weights, m.name);
  }
}

}  // namespace
}  // namespace caldera::testing
