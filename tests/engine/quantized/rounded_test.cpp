// Products whose x is rounded to 8 bits, against plain loops in double over x as Activations says: through
// the graph, and by each instruction set that the build and this processor have.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "engine/autodiff/autodiff.h"
#include "engine/device/cpu/quantized/integer_ops.h"
#include "engine/device/cpu/quantized/quantized_ops.h"
#include "tests/engine/quantized/golden_matrices.h"
#include "tests/support/instruction_sets.h"

namespace caldera::testing {
namespace {

class RoundedProducts : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, RoundedProducts, ::testing::ValuesIn(op_settings()), op_setting_name);

/// The golden matrix `times` times below itself.
GoldenMatrix stacked(const GoldenMatrix& m, std::int64_t times) {
  GoldenMatrix all = m;
  all.shape = Shape{m.shape[0] * times, m.shape[1]};
  for (std::size_t p = 0; p < m.parts.size(); ++p) {
    all.parts[p].shape = Shape{m.parts[p].shape[0] * times, m.parts[p].shape[1]};
    for (std::int64_t t = 1; t < times; ++t)
      all.parts[p].bytes.insert(all.parts[p].bytes.end(), m.parts[p].bytes.begin(), m.parts[p].bytes.end());
  }
  for (std::int64_t t = 1; t < times; ++t)
    all.weights.insert(all.weights.end(), m.weights.begin(), m.weights.end());
  return all;
}

/// Those that are a scale times integers, where they are finite: of each format one.
std::vector<GoldenMatrix> find_integer_matrices() {
  std::vector<GoldenMatrix> found;
  for (const GoldenMatrix& m : golden_matrices()) {
    const bool is_finite = std::ranges::all_of(m.weights, [](float w) { return std::isfinite(w); });
    if (has_integer_codes(m.layout.format) && m.shape.rank() == 2 && is_finite) found.push_back(m);
  }
  return found;
}

const std::vector<GoldenMatrix>& integer_matrices() {
  static const std::vector<GoldenMatrix> all = find_integer_matrices();
  return all;
}

float largest_of(const GoldenMatrix& m) {
  float largest = 0;
  for (const float w : m.weights) largest = std::max(largest, std::fabs(w));
  return largest;
}

std::vector<float> some_rows(std::int64_t rows, std::int64_t columns, std::uint64_t seed) {
  std::vector<float> x;
  for (const double v : random_values(rows * columns, 0.1, 1, true, seed)) x.push_back(static_cast<float>(v));
  for (std::int64_t r = 0; r < rows; ++r)  // blocks differ in size, and one is zero
    for (std::int64_t k = 0; k < columns; ++k)
      x[static_cast<std::size_t>(r * columns + k)] *= static_cast<float>((r + k / 32) % 5);
  return x;
}

std::vector<double> rounded(const std::vector<float>& x) {
  std::vector<double> out;
  for (std::size_t first = 0; first < x.size(); first += 32) {
    float most = 0;
    for (std::size_t k = first; k < first + 32; ++k) most = std::max(most, std::fabs(x[k]));
    for (std::size_t k = first; k < first + 32; ++k)
      out.push_back(most == 0 ? 0 : static_cast<double>(most / 127) * std::nearbyint(x[k] * (127 / most)));
  }
  return out;
}

double dot_of(const double* x, const float* w, std::int64_t columns) {
  double sum = 0;
  for (std::int64_t k = 0; k < columns; ++k) sum += x[k] * static_cast<double>(w[k]);
  return sum;
}

TEST_P(RoundedProducts, EqualProductsOfRoundedRows) {
  for (const GoldenMatrix& small : integer_matrices()) {
    const GoldenMatrix m = stacked(small, 7);
    QuantizedTensor q = upload(m, device());
    q.activations = Activations::rounded;
    const std::int64_t inner = m.shape[1], width = m.shape[0];
    std::vector<Pending> all;
    for (const std::int64_t rows : {1, 3, 4, 5, 33}) {
      if (is_vulkan() && rows != 5) continue;
      const std::vector<float> x = some_rows(rows, inner, 11);
      std::vector<double> of_x = rounded(x);
      if (is_vulkan()) of_x.assign(x.begin(), x.end());
      std::vector<double> want;
      for (std::int64_t r = 0; r < rows; ++r)
        for (std::int64_t n = 0; n < width; ++n)
          want.push_back(dot_of(of_x.data() + r * inner, m.weights.data() + n * inner, inner));
      const Host host(Shape{rows, inner}, std::vector<double>(x.begin(), x.end()));
      all.push_back(
          {m.name,
           quantized_matmul(upload(host, DType::f32, device()), q),
           Host(Shape{rows, width}, want),
           {1e-5, 4e-6 * static_cast<double>(largest_of(m)) * std::sqrt(static_cast<double>(inner))}});
    }
    check_all(all);
  }
}

TEST_P(RoundedProducts, AreThoseOfEveryFormat) {
  std::vector<std::string> names;
  for (const GoldenMatrix& m : integer_matrices()) names.push_back(m.name);
  EXPECT_EQ(names.size(), 16U) << fmt::format("{}", fmt::join(names, " "));
}

TEST_P(RoundedProducts, AreNoneOfGradientsAndOtherWork) {
  const GoldenMatrix& m = integer_matrices().front();
  QuantizedTensor q = upload(m, device());
  const Shape shape{5, m.shape[1]};
  const Host host(shape, random_values(shape.numel(), 0.1, 1, true, 3));
  const auto gradient = [&](Activations activations) {
    q.activations = activations;
    const LazyTensor x = upload(host, DType::f32, device());
    return download(grad(sum(quantized_matmul(x, q)), {x})[0]);
  };
  EXPECT_EQ(gradient(Activations::rounded), gradient(Activations::exact));
}

TEST_P(RoundedProducts, OfWhatIsNotFiniteAreNan) {
  const GoldenMatrix& m = integer_matrices().front();
  QuantizedTensor q = upload(m, device());
  q.activations = Activations::rounded;
  for (const double bad :
       {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()}) {
    std::vector<double> x(static_cast<std::size_t>(6 * m.shape[1]), 0.5);
    x[static_cast<std::size_t>(m.shape[1] + 7)] = bad;  // of row 1
    const auto y = download(quantized_matmul(upload(Host(Shape{6, m.shape[1]}, x), DType::f32, device()), q));
    const auto width = static_cast<std::size_t>(m.shape[0]);
    EXPECT_FALSE(std::isfinite(y[width]));
    EXPECT_TRUE(std::isfinite(y[0]));
    EXPECT_TRUE(std::isfinite(y[2 * width]));
  }
}

/// The rows of a block format, or of one of groups with f32 scales.
cpu::QuantizedRow row_at(const GoldenMatrix& m, std::int64_t row) {
  const auto at = [&](std::size_t part) {
    const GoldenMatrix::Part& p = m.parts[part];
    return p.bytes.data() + row * p.shape[1] * static_cast<std::int64_t>(size_of(p.type));
  };
  cpu::QuantizedRow found{.codes = at(0)};
  if (m.parts.size() == 1) return found;
  found.scales = reinterpret_cast<const float*>(at(1));
  found.biases = reinterpret_cast<const float*>(at(2));
  return found;
}

void check_kernels(const cpu::IntegerOps& ops, const GoldenMatrix& m, const std::string& set) {
  const std::int64_t columns = m.shape[1], rows = 13;
  const std::vector<float> x = some_rows(rows, columns, 5);
  const std::vector<double> of_x = rounded(x);
  const auto memory = [](std::size_t bytes) { return std::vector<std::byte>(bytes + 64); };
  const auto aligned = [](std::vector<std::byte>& v) {
    return v.data() + (64 - reinterpret_cast<std::uintptr_t>(v.data()) % 64) % 64;
  };
  std::vector<std::byte> of_rounded = memory(cpu::RoundedRows::bytes(rows, columns));
  const cpu::RoundedRows narrow = cpu::RoundedRows::in(aligned(of_rounded), rows, columns);
  ops.round(x.data(), columns, rows, narrow);
  for (std::size_t k = 0; k < x.size(); ++k)
    ASSERT_EQ(static_cast<double>(narrow.scales[k / 32]) * narrow.codes[k], of_x[k]) << set << " rounds";
  const double bound = 1e-5 * static_cast<double>(largest_of(m)) * std::sqrt(static_cast<double>(columns));
  const auto check = [&](const std::vector<float>& got, std::int64_t count, const char* what) {
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t n = 0; n < count; ++n) {
        const double want = dot_of(of_x.data() + i * columns, m.weights.data() + n * columns, columns);
        ASSERT_NEAR(static_cast<double>(got[static_cast<std::size_t>(i * count + n)]), want,
                    bound + 1e-5 * std::fabs(want))
            << set << " " << what << " " << m.name << " row " << i << " of weights " << n;
      }
  };
  const std::int64_t count = cpu::kPanelRows - 1;
  std::vector<float> out(static_cast<std::size_t>(rows * count));
  cpu::QuantizedRow panel[cpu::kPanelRows];
  for (std::int64_t n = 0; n < cpu::kPanelRows; ++n) panel[n] = row_at(m, n);
  ops.dot(m.layout, panel, count, narrow, rows, out.data(), count);
  check(out, count, "dot");
  if (ops.pack == nullptr) return;
  std::vector<std::byte> of_tiles = memory(cpu::RoundedTiles::bytes(rows, columns));
  const cpu::RoundedTiles tiles{columns, reinterpret_cast<cpu::RoundedBlock*>(aligned(of_tiles))};
  for (std::int64_t t = 0; t < cpu::RoundedTiles::tiles(rows); ++t)
    ops.round_tile(m.layout.format, x.data(), columns, rows, t, tiles);
  std::vector<std::byte> of_panel = memory(cpu::panel_bytes(columns));
  ops.pack(m.layout, panel, columns, aligned(of_panel));
  std::ranges::fill(out, 0.0F);
  ops.multiply(m.layout, aligned(of_panel), tiles, rows, out.data(), count, count);
  check(out, count, "panel");
}

TEST(IntegerOps, AreTheSameOfEachInstructionSet) {
  std::set<const cpu::IntegerOps*> chosen;
  with_each_instruction_set([&](const char* name) {
    for (const bool byte_dots : {false, true}) {
      chosen.insert(&cpu::choose_integer_ops(byte_dots));
      for (const GoldenMatrix& m : integer_matrices()) {
        const bool has_f32_scales = m.parts.size() == 1 || m.parts[1].type == DType::f32;
        if (has_f32_scales) check_kernels(cpu::choose_integer_ops(byte_dots), stacked(m, 6), name);
      }
    }
  });
#if HWY_ARCH_X86
  // The loops over bytes; from AVX2 on those over vectors; with products of four bytes those as well.
  if ((hwy::SupportedTargets() & HWY_AVX2) != 0) {
    EXPECT_GT(chosen.size(), 1U);
  }
  if (cpu::integer_ops().pack != nullptr) {
    EXPECT_GT(chosen.size(), 3U);
  }
#endif
}

}  // namespace
}  // namespace caldera::testing
