// Rows that are interleaved by sixteen: where their bytes are, and that all that reads quantised matrices
// finds the same weights there.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/device/cpu/quantized/integer_ops.h"
#include "engine/device/cpu_interleaved.h"
#include "engine/tensor/interleaved_rows.h"
#include "tests/engine/quantized/golden_matrices.h"

namespace caldera::testing {
namespace {

/// The golden matrix beside itself until it has more than a chunk of columns, and no whole number of chunks
/// where its blocks are small.
GoldenMatrix widened(const GoldenMatrix& m) {
  const std::int64_t times = m.shape[1] > kInterleavedColumns ? 1 : 288 / m.shape[1] + 1;
  GoldenMatrix wide = m;
  wide.shape = Shape{m.shape[0], m.shape[1] * times};
  wide.parts[0].shape = Shape{m.shape[0], m.parts[0].shape[1] * times};
  wide.parts[0].bytes.clear();
  wide.weights.clear();
  for (std::int64_t r = 0; r < m.shape[0]; ++r)
    for (std::int64_t t = 0; t < times; ++t) {
      const auto bytes = m.parts[0].bytes.begin() + r * m.parts[0].shape[1];
      wide.parts[0].bytes.insert(wide.parts[0].bytes.end(), bytes, bytes + m.parts[0].shape[1]);
      const auto weights = m.weights.begin() + r * m.shape[1];
      wide.weights.insert(wide.weights.end(), weights, weights + m.shape[1]);
    }
  return wide;
}

/// Sixteen of the golden matrix below each other, of formats that are interleaved.
std::vector<GoldenMatrix> sixteens() {
  std::vector<GoldenMatrix> found;
  for (const GoldenMatrix& golden : golden_matrices()) {
    const bool is_finite = std::ranges::all_of(golden.weights, [](float w) { return std::isfinite(w); });
    if (golden.shape.rank() != 2 || !is_finite || interleaved_runs(golden.layout.format).empty()) continue;
    const GoldenMatrix m = widened(golden);
    GoldenMatrix all = m;
    all.shape = Shape{m.shape[0] * kInterleavedRows, m.shape[1]};
    all.parts[0].shape = Shape{m.shape[0] * kInterleavedRows, m.parts[0].shape[1]};
    for (int t = 1; t < kInterleavedRows; ++t) {
      all.parts[0].bytes.insert(all.parts[0].bytes.end(), m.parts[0].bytes.begin(), m.parts[0].bytes.end());
      all.weights.insert(all.weights.end(), m.weights.begin(), m.weights.end());
    }
    found.push_back(all);
  }
  return found;
}

GoldenMatrix interleaved_of(GoldenMatrix m) {
  std::vector<std::uint8_t> out(m.parts[0].bytes.size());
  cpu_interleave(m.layout.format, reinterpret_cast<const std::byte*>(m.parts[0].bytes.data()), m.shape[0],
                 m.shape[1], reinterpret_cast<std::byte*>(out.data()));
  m.parts[0].bytes = out;
  m.layout.interleaved = true;
  return m;
}

TEST(InterleavedRows, LieAsDocumented) {
  // Two blocks of q8_0 a row: byte i of row r is r + 16 i.
  const std::int64_t columns = 64, row_bytes = 68;
  std::vector<std::byte> rows(16 * row_bytes), out(rows.size());
  for (std::int64_t r = 0; r < 16; ++r)
    for (std::int64_t i = 0; i < row_bytes; ++i)
      rows[static_cast<std::size_t>(r * row_bytes + i)] = static_cast<std::byte>(r + 16 * (i % 16));
  interleave_rows(QuantizedFormat::q8_0, rows.data(), columns, out.data());
  for (std::int64_t r = 0; r < 16; ++r)
    for (std::int64_t b = 0; b < 2; ++b) {
      for (std::int64_t c = 0; c < 32; ++c)
        EXPECT_EQ(out[static_cast<std::size_t>(64 + 512 * b + c / 4 * 64 + 4 * r + c % 4)],
                  rows[static_cast<std::size_t>(r * row_bytes + 34 * b + 2 + c)]);
      for (std::int64_t i = 0; i < 2; ++i)
        EXPECT_EQ(out[static_cast<std::size_t>(32 * b + 2 * r + i)],
                  rows[static_cast<std::size_t>(r * row_bytes + 34 * b + i)]);
    }
}

TEST(InterleavedRows, ComeApartAgain) {
  EXPECT_EQ(sixteens().size(), 8U);
  for (const GoldenMatrix& m : sixteens()) {
    const GoldenMatrix other = interleaved_of(m);
    EXPECT_NE(other.parts[0].bytes, m.parts[0].bytes) << m.name;
    const QuantizedTensor q = separated(upload(other, Device::cpu()));
    EXPECT_FALSE(q.layout.interleaved);
    EXPECT_EQ(q.parts[0].to_vector<std::uint8_t>(), m.parts[0].bytes) << m.name;
  }
}

TEST(InterleavedRows, AreThoseOfFormatsAndSixteens) {
  for (const std::int64_t rows : {8, 16, 17, 32})
    EXPECT_EQ(why_not_interleaved({QuantizedFormat::q4_0, 0, 1, true}, rows).empty(), rows % 16 == 0) << rows;
  EXPECT_FALSE(why_not_interleaved({QuantizedFormat::affine4, 64, 1, true}, 16).empty());
  EXPECT_FALSE(why_not_interleaved({QuantizedFormat::f32, 0, 1, true}, 16).empty());
  EXPECT_FALSE(to(QuantizedTensor(), Device::cpu()).defined());
  EXPECT_FALSE(interleaved(QuantizedTensor()).defined());
  const QuantizedTensor plain = upload(sixteens().front(), Device::cpu());
  EXPECT_EQ(separated(plain).parts[0].node_id(), plain.parts[0].node_id());
  EXPECT_EQ(interleaved(plain).layout.interleaved, cpu::integer_ops().dot_interleaved != nullptr);
}

std::vector<float> scaled_rows(std::int64_t rows, std::int64_t columns) {
  std::vector<float> x;
  for (const double v : random_values(rows * columns, 0.1, 1, true, 3)) x.push_back(static_cast<float>(v));
  for (std::size_t k = 0; k < x.size(); ++k) x[k] *= static_cast<float>(k / 32 % 5);
  return x;
}

class InterleavedProducts : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, InterleavedProducts, ::testing::ValuesIn(op_settings()), op_setting_name);

TEST_P(InterleavedProducts, HaveTheWeightsOfRows) {
  const std::vector<GoldenMatrix> all = sixteens();
  for (std::size_t f = 0; f < all.size(); ++f) {
    if (is_vulkan() && f % 4 != 0) continue;
    const GoldenMatrix& m = all[f];
    const QuantizedTensor rows = upload(m, device());
    // What moves to another device comes apart.
    const QuantizedTensor other = to(upload(interleaved_of(m), Device::cpu()), device());
    ASSERT_EQ(other.layout.interleaved, !is_vulkan());
    EXPECT_EQ(download(dequantize(other)), download(dequantize(rows))) << m.name;
    const LazyTensor which = upload(Host(Shape{3}, {5, 0, 15}), DType::i32, device());
    EXPECT_EQ(download(quantized_embedding(other, which)), download(quantized_embedding(rows, which)));
    for (const bool transpose : {true, false}) {
      const Shape shape{4, transpose ? m.shape[1] : m.shape[0]};
      const LazyTensor x =
          upload(Host(shape, random_values(shape.numel(), 0.1, 1, true, 9)), DType::f32, device());
      EXPECT_EQ(download(quantized_matmul(x, other, transpose)),
                download(quantized_matmul(x, rows, transpose)))
          << m.name << " " << transpose;
    }
  }
}

TEST_P(InterleavedProducts, AreThoseOfRoundedRows) {
  if (is_vulkan()) GTEST_SKIP() << "rows are interleaved on the CPU alone";
  for (const GoldenMatrix& m : sixteens()) {
    QuantizedTensor q = upload(interleaved_of(m), device());
    q.activations = Activations::rounded;
    const std::int64_t inner = m.shape[1], width = m.shape[0];
    float largest = 0;
    for (const float w : m.weights) largest = std::max(largest, std::fabs(w));
    std::vector<Pending> pending;
    for (const std::int64_t rows : {1, 2, 3, 4, 5, 33}) {
      const std::vector<float> x = scaled_rows(rows, inner);
      std::vector<double> want;
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t n = 0; n < width; ++n) {
          double sum = 0;
          for (std::int64_t first = 0; first < inner; first += 32) {
            const float* block = x.data() + r * inner + first;
            float most = 0;
            for (int k = 0; k < 32; ++k) most = std::max(most, std::fabs(block[k]));
            for (int k = 0; k < 32 && most > 0; ++k)
              sum += static_cast<double>(most / 127) * std::nearbyint(block[k] * (127 / most)) *
                     static_cast<double>(m.weights[static_cast<std::size_t>(n * inner + first + k)]);
          }
          want.push_back(sum);
        }
      const Host host(Shape{rows, inner}, std::vector<double>(x.begin(), x.end()));
      pending.push_back(
          {m.name,
           quantized_matmul(upload(host, DType::f32, device()), q),
           Host(Shape{rows, width}, want),
           {1e-5, 4e-6 * static_cast<double>(largest) * std::sqrt(static_cast<double>(inner))}});
    }
    check_all(pending);
  }
}

TEST_P(InterleavedProducts, OfSeveralMatricesAreThoseOfEach) {
  if (is_vulkan()) GTEST_SKIP() << "rows are interleaved on the CPU alone";
  GoldenMatrix m = sixteens().front();
  const std::int64_t half = m.shape[0];
  m.shape = Shape{2 * half, m.shape[1]};
  m.parts[0].shape = Shape{2 * half, m.parts[0].shape[1]};
  const std::vector<std::uint8_t> once = m.parts[0].bytes;
  const std::int64_t row = m.parts[0].shape[1];
  for (std::int64_t r = half; r-- > 0;)  // the rows in reverse
    m.parts[0].bytes.insert(m.parts[0].bytes.end(), once.begin() + r * row, once.begin() + (r + 1) * row);
  QuantizedTensor q = upload(interleaved_of(m), device()), rows = upload(m, device());
  for (QuantizedTensor* both : {&q, &rows}) {
    both->shape = Shape{2, half, m.shape[1]};
    both->parts[0] = reshape(both->parts[0], Shape{2, half, m.parts[0].shape[1]});
    both->activations = Activations::rounded;
  }
  const std::vector<float> values = scaled_rows(3, m.shape[1]);
  const LazyTensor x = upload(Host(Shape{3, m.shape[1]}, std::vector<double>(values.begin(), values.end())),
                              DType::f32, device());
  const LazyTensor which = upload(Host(Shape{3}, {1, 0, 1}), DType::i32, device());
  const auto got = download(quantized_matmul_by(x, q, which)),
             want = download(quantized_matmul_by(x, rows, which));
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-5 * (1 + std::fabs(want[i])));
}

}  // namespace
}  // namespace caldera::testing
