// Products with quantised matrices against plain loops in double over their golden weights: both axes,
// gradients, several matrices, adapters, and what they move.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/autodiff/autodiff.h"
#include "engine/autodiff/jvp.h"
#include "engine/autodiff/vmap.h"
#include "engine/plan/cost.h"
#include "engine/runtime/evaluate.h"
#include "ops/linalg/matmul.h"
#include "ops/nn/lora.h"
#include "tests/engine/quantized/golden_matrices.h"
#include "tests/support/messages.h"

namespace caldera::testing {
namespace {

class QuantizedProducts : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, QuantizedProducts, ::testing::ValuesIn(op_settings()), op_setting_name);

/// A matrix whose weights are numbers, all of them at most 1: products of others have no bound to hold them
/// to. Scaled on the way: x is what is divided.
struct Scaled {
  std::vector<double> weights;
  double largest = 0;
};
Scaled scaled(const GoldenMatrix& m) {
  Scaled s;
  for (const float w : m.weights) {
    s.weights.push_back(std::isfinite(w) ? static_cast<double>(w) : 0);
    s.largest = std::max(s.largest, std::abs(s.weights.back()));
  }
  return s;
}

bool has_nan(const GoldenMatrix& m) {
  for (const float w : m.weights)
    if (std::isnan(w)) return true;
  return false;
}

std::vector<double> product(const std::vector<double>& x, const std::vector<double>& w, std::int64_t rows,
                            std::int64_t inner, std::int64_t width, bool transpose) {
  std::vector<double> out(static_cast<std::size_t>(rows * width));
  for (std::int64_t r = 0; r < rows; ++r) {
    for (std::int64_t c = 0; c < width; ++c) {
      double sum = 0;
      for (std::int64_t i = 0; i < inner; ++i)
        sum += x[static_cast<std::size_t>(r * inner + i)] *
               w[static_cast<std::size_t>(transpose ? c * inner + i : i * width + c)];
      out[static_cast<std::size_t>(r * width + c)] = sum;
    }
  }
  return out;
}

TEST_P(QuantizedProducts, EqualProductsOfWeights) {
  for (const GoldenMatrix& m : golden_matrices()) {
    if (has_nan(m)) continue;
    const QuantizedTensor q = upload(m, device());
    const Scaled s = scaled(m);
    std::vector<Pending> all;
    for (const std::int64_t rows : {1, 5, 8, 33}) {
      // A device's kernels for other numbers of rows differ by a constant: one format stands for all.
      if (is_vulkan() && rows != 1 && rows != 33 && m.name != "q8_0") continue;
      for (const bool transpose : {true, false}) {
        const std::int64_t inner = m.shape[transpose ? 1 : 0], width = m.shape[transpose ? 0 : 1];
        const Host x =
            stored(Host(Shape{rows, inner}, random_values(rows * inner, 0.1, 1, true, 7)), DType::f32);
        const LazyTensor y = quantized_matmul(upload(x, DType::f32, device()), q, transpose);
        all.push_back({m.name + (transpose ? "" : " transposed"),
                       y,
                       Host(Shape{rows, width}, product(x.values, s.weights, rows, inner, width, transpose)),
                       {1e-5, 1e-6 * s.largest * std::sqrt(static_cast<double>(inner))}});
      }
    }
    check_all(all);
  }
}

TEST_P(QuantizedProducts, NanAndShapesPassThrough) {
  for (const GoldenMatrix& m : golden_matrices()) {
    if (!has_nan(m)) continue;
    const LazyTensor x = LazyTensor::ones(Shape{2, 3, m.shape[1]}, DType::f16, device());
    const LazyTensor y = quantized_matmul(x, upload(m, device()));
    EXPECT_EQ(y.shape(), (Shape{2, 3, m.shape[0]}));
    EXPECT_EQ(y.dtype(), DType::f16);
    EXPECT_TRUE(std::isnan(download(y)[0])) << m.name;
  }
}

TEST_P(QuantizedProducts, ReadTransposedOperandsWhereTheyLie) {
  const GoldenMatrix& m = golden_matrices().front();
  const Scaled s = scaled(m);
  const std::int64_t rows = 3, inner = m.shape[1];
  const Host x = stored(Host(Shape{inner, rows}, random_values(rows * inner, 0.1, 1, true, 8)), DType::f32);
  std::vector<double> turned(x.values.size());
  for (std::int64_t i = 0; i < inner; ++i)
    for (std::int64_t r = 0; r < rows; ++r)
      turned[static_cast<std::size_t>(r * inner + i)] = x.values[static_cast<std::size_t>(i * rows + r)];
  const LazyTensor y = quantized_matmul(transpose(upload(x, DType::f32, device())), upload(m, device()));
  EXPECT_TRUE(agrees(y, Host(Shape{rows, 3}, product(turned, s.weights, rows, inner, 3, true)),
                     {1e-5, 1e-5 * s.largest}));
}

/// A trained adapter beside a quantised weight: y = x w^T + s (x a) b, and the gradients of x, a and b.
TEST_P(QuantizedProducts, AdaptersAreTrainedBesideThem) {
  for (const char* wanted : {"q4_k", "codebook4_64", "affine4_64"}) {
    for (const GoldenMatrix& m : golden_matrices()) {
      if (m.name != wanted) continue;
      const std::int64_t rows = 12, in = m.shape[1], out = m.shape[0], rank = 4;
      const auto values = [&](const Shape& shape, std::uint64_t seed) {
        return upload(stored(Host(shape, random_values(shape.numel(), 0.1, 1, true, seed)), DType::f32),
                      DType::f32, device());
      };
      const LazyTensor x = values(Shape{rows, in}, 1), a = values(Shape{in, rank}, 2),
                       b = values(Shape{rank, out}, 3), go = values(Shape{rows, out}, 4);
      const QuantizedTensor q = upload(m, device());
      const LazyTensor w = LazyTensor::from_vector(m.weights, m.shape, device());
      const LazyTensor inputs[] = {x, a, b};
      const auto gradients = [&](const LazyTensor& base) {
        const LazyTensor y = base + lora_delta(x, a, b, 0.5);
        std::vector<LazyTensor> all = vjp({&y, 1}, inputs, {&go, 1});
        all.push_back(y);
        return all;
      };
      const std::vector<LazyTensor> got = gradients(quantized_matmul(x, q));
      const std::vector<LazyTensor> want = gradients(matmul(x, transpose(w)));
      for (std::size_t i = 0; i < got.size(); ++i) {
        const std::vector<double> g = download(got[i]), e = download(want[i]);
        double largest = 0, difference = 0;
        for (std::size_t k = 0; k < e.size(); ++k) {
          largest = std::max(largest, std::abs(e[k]));
          difference = std::max(difference, std::abs(g[k] - e[k]));
        }
        EXPECT_LE(difference, 1e-5 * largest) << m.name << ", result " << i;
      }
    }
  }
}

TEST_P(QuantizedProducts, TakeOneOfSeveralMatricesForEachRow) {
  for (const char* wanted : {"q8_0", "mxfp4", "affine8_32", "codebook4_64", "f16", "f32"}) {
    for (const GoldenMatrix& m : golden_matrices()) {
      if (m.name != wanted) continue;
      // The three rows as matrices of one row each.
      std::vector<LazyTensor> parts;
      for (const LazyTensor& part : upload(m, device()).parts)
        parts.push_back(part.shape(0) == 3 ? reshape(part, Shape{3, 1, part.shape(1)})
                                           : broadcast_to(part, Shape{3, 1, part.shape(1)}));
      const QuantizedTensor q = quantized_tensor(m.layout, Shape{3, 1, m.shape[1]}, parts);
      const Scaled s = scaled(m);
      const std::int64_t in = m.shape[1];
      for (const std::int64_t rows : {4, 50}) {
        std::vector<std::int32_t> which;
        for (std::int64_t r = 0; r < rows; ++r) which.push_back(static_cast<std::int32_t>(r * 4 / rows));
        const LazyTensor ids =
            LazyTensor::from_vector(which, Shape{rows}, device());  // the last ones: outside
        const Host x = stored(Host(Shape{rows, in}, random_values(rows * in, 0.1, 1, true, 5)), DType::f32);
        const LazyTensor given = upload(x, DType::f32, device());
        const LazyTensor y = quantized_matmul_by(given, q, ids);
        const LazyTensor go = LazyTensor::ones(Shape{rows, 1}, DType::f32, device());
        const std::vector<double> back = download(vjp({&y, 1}, {&given, 1}, {&go, 1})[0]);
        const std::vector<double> got = download(y);
        for (std::int64_t r = 0; r < rows; ++r) {
          const int e = which[static_cast<std::size_t>(r)];
          double sum = e < 3 ? 0 : NAN;
          for (std::int64_t k = 0; k < in && e < 3; ++k) {
            const double w = s.weights[static_cast<std::size_t>(e * in + k)];
            sum += x.values[static_cast<std::size_t>(r * in + k)] * w;
            EXPECT_EQ(back[static_cast<std::size_t>(r * in + k)], w) << m.name;
          }
          if (std::isnan(sum))
            EXPECT_TRUE(std::isnan(got[static_cast<std::size_t>(r)]));
          else
            EXPECT_NEAR(got[static_cast<std::size_t>(r)], sum, 1e-4 * s.largest) << m.name;
        }
      }
    }
  }
}

TEST_P(QuantizedProducts, MoveTheirBytesAndNoCopyOfWeights) {
  std::vector<std::uint8_t> bytes(std::size_t{256} * 2 * 144);
  const QuantizedTensor q = quantized_tensor({QuantizedFormat::q4_k}, Shape{256, 512},
                                             {LazyTensor::from_vector(bytes, Shape{256, 288}, device())});
  EXPECT_EQ(q.bytes(), 256 * 288);
  for (const std::int64_t rows : {1, 64}) {
    const LazyTensor x = LazyTensor::ones(Shape{rows, 512}, DType::f32, device());
    eval({x});
    const auto plan = plan_for({quantized_matmul(x, q)});
    ASSERT_EQ(plan->steps.size(), 1U);
    const StepCost cost = cost_of(*plan, plan->steps[0]);
    EXPECT_EQ(cost.bytes(), q.bytes() + 4 * rows * (512 + 256));
    EXPECT_EQ(cost.flops, 2 * rows * 512 * 256);
    EXPECT_EQ(plan->arena_bytes, 0);
  }
  const LazyTensor ids = LazyTensor::from_vector<std::int32_t>({7, 9}, Shape{2}, device());
  const auto plan = plan_for({quantized_embedding(q, ids)});
  EXPECT_EQ(cost_of(*plan, plan->steps[0]).read_bytes, 2 * 288 + 8);
}

TEST_P(QuantizedProducts, OfNothing) {
  const QuantizedTensor none = quantized_tensor({QuantizedFormat::q8_0}, Shape{4, 0},
                                                {LazyTensor::zeros(Shape{4, 0}, DType::u8, device())});
  const LazyTensor x = LazyTensor::ones(Shape{2, 0}, DType::f32, device());
  EXPECT_EQ(download(quantized_matmul(x, none)), std::vector<double>(8, 0));
  const LazyTensor back = quantized_matmul(LazyTensor::ones(Shape{2, 4}, DType::f32, device()), none, false);
  EXPECT_EQ(back.shape(), (Shape{2, 0}));
  EXPECT_EQ(download(back).size(), 0U);
}

TEST(QuantizedErrors, NameWhatIsWrong) {
  const LazyTensor blocks = LazyTensor::zeros(Shape{4, 34}, DType::u8);
  const QuantizedTensor q = quantized_tensor({QuantizedFormat::q8_0}, Shape{4, 32}, {blocks});
  const auto shapes = [](const auto& body) { return message_of<ShapeError>(body); };
  EXPECT_MENTIONS(shapes([&] {
                    quantized_tensor({QuantizedFormat::q8_0}, Shape{4, 33}, {blocks});
                  }),
                  "q8_0 of shape (4, 33): columns are no multiple of the block");
  EXPECT_MENTIONS(shapes([&] {
                    quantized_tensor({QuantizedFormat::q8_0}, Shape{5, 32}, {blocks});
                  }),
                  "the blocks of q8_0 (5, 32) are (5, 34), got (4, 34)");
  EXPECT_MENTIONS(shapes([&] {
                    quantized_tensor({QuantizedFormat::affine4, 64}, Shape{4, 64}, {blocks});
                  }),
                  "affine4 has 3 parts, got 1");
  EXPECT_MENTIONS(shapes([&] {
                    quantized_tensor({QuantizedFormat::affine4}, Shape{4, 64}, {blocks});
                  }),
                  "a group has to have rows and columns");
  EXPECT_MENTIONS(
      message_of<DTypeError>([&] {
        quantized_tensor({QuantizedFormat::q8_0}, Shape{4, 32}, {LazyTensor::zeros(Shape{4, 34}, DType::i8)});
      }),
      "the blocks of q8_0 are uint8, got int8");
  const LazyTensor x = LazyTensor::ones(Shape{2, 31});
  EXPECT_MENTIONS(shapes([&] { quantized_matmul(x, q); }), "the inner extents differ");
  EXPECT_MENTIONS(message_of<DTypeError>([&] { quantized_matmul(astype(x, DType::i32), q); }),
                  "int32 is neither float32");
  EXPECT_MENTIONS(message_of<DTypeError>([&] { dequantize(q, DType::f64); }), "float64 is neither");
  const QuantizedTensor three = quantized_tensor({QuantizedFormat::q8_0}, Shape{3, 4, 32},
                                                 {LazyTensor::zeros(Shape{3, 4, 34}, DType::u8)});
  EXPECT_MENTIONS(shapes([&] {
                    quantized_matmul(LazyTensor::ones(Shape{2, 32}), three);
                  }),
                  "several matrices");
}

TEST_P(QuantizedProducts, CodesMayLieAsSignedWords) {
  for (const GoldenMatrix& m : golden_matrices()) {
    if (m.name != "affine4_64") continue;
    QuantizedTensor q = upload(m, device());
    const GoldenMatrix::Part& codes = m.parts[0];
    q.parts[0] =
        LazyTensor::from_bytes(codes.bytes.data(), codes.bytes.size(), DType::i32, codes.shape, device());
    q = quantized_tensor(q.layout, q.shape, q.parts);
    EXPECT_EQ(dequantize(q).to_vector<float>(), m.weights);
  }
}

TEST(QuantizedErrors, WeightsAreFrozen) {
  const LazyTensor scales = LazyTensor::ones(Shape{2, 1});
  const QuantizedTensor q =
      quantized_tensor({QuantizedFormat::affine4, 32}, Shape{2, 32},
                       {LazyTensor::zeros(Shape{2, 4}, DType::u32), scales, LazyTensor::ones(Shape{2, 1})});
  const LazyTensor y = sum(quantized_matmul(LazyTensor::ones(Shape{1, 32}), q));
  EXPECT_MENTIONS(message_of<GradientError>([&] { grad(y, scales); }), "quantised weights are frozen");
  const LazyTensor z = sum(dequantize(q));
  EXPECT_MENTIONS(message_of<GradientError>([&] { grad(z, scales); }), "dequantize: quantised weights");
}

TEST(QuantizedTransforms, ForwardModeAndVmap) {
  const GoldenMatrix& m = golden_matrices().back();
  const QuantizedTensor q = upload(m, Device::cpu());
  const LazyTensor x = upload(Host(Shape{2, 3, m.shape[1]}, random_values(6 * m.shape[1], 0.1, 1, true, 1)),
                              DType::f32, Device::cpu());
  const std::vector<double> want = download(quantized_matmul(x, q));
  const LazyTensor mapped = vmap([&](const LazyTensor& row) { return quantized_matmul(row, q); })(x);
  EXPECT_EQ(download(mapped), want);
  const LazyTensor other =
      upload(Host(x.shape(), std::vector<double>(static_cast<std::size_t>(x.numel()), 1)), DType::f32,
             Device::cpu());
  const LazyTensor y = quantized_matmul(other, q);
  EXPECT_EQ(download(jvp({&y, 1}, {&other, 1}, {&x, 1})[0]), want);
}

}  // namespace
}  // namespace caldera::testing
