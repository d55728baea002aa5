// Reductions and matrix products on every device against plain loops in double.
//
// Values are multiples of 1/8 and small, so that every product and every partial sum is exact in f32:
// whatever the order of summation, the result must be equal. Rounding has a test of its own.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class ForwardReduce : public OpTest {
 protected:
  /// Eighths for floating types, else whole numbers, in [-4, 4].
  Operand exact_operand(const Shape& shape, Layout layout, DType type, std::uint64_t seed) const {
    const Shape base = base_shape(shape, layout);
    Host host(base, random_values(base.numel(), 0, 4, !is_unsigned(type), seed));
    for (double& v : host.values) v = is_floating(type) ? std::round(v * 8) / 8 : std::trunc(v);
    return {view_of(upload(host, type, device()), shape, layout), seen_through(host, shape, layout)};
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, ForwardReduce, ::testing::ValuesIn(op_settings()), op_setting_name);

using Combine2 = double (*)(double, double);

Host reduced(const Host& x, const std::vector<int>& axes, double start, Combine2 combine) {
  Shape kept = x.shape;
  for (int axis : axes) kept[axis] = 1;
  Host out(kept);
  std::fill(out.values.begin(), out.values.end(), start);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    Index at = unravel(static_cast<std::int64_t>(i), x.shape);
    for (int axis : axes) at[static_cast<std::size_t>(axis)] = 0;
    out[at] = combine(out[at], x.values[i]);
  }
  return out;
}

struct Case {
  Shape shape;
  std::vector<int> axes;
  Layout layout;
};
const Case kCases[] = {
    {{}, {}, Layout::plain},
    {{1}, {0}, Layout::plain},
    {{7}, {0}, Layout::reversed},
    {{33}, {0}, Layout::sliced},
    {{1025}, {0}, Layout::plain},
    {{3, 1025}, {1}, Layout::plain},
    {{1025, 3}, {0}, Layout::plain},
    {{7, 33}, {0, 1}, Layout::permuted},
    {{7, 33}, {1}, Layout::permuted},
    {{33, 7}, {0}, Layout::broadcast},
    {{33, 7}, {1}, Layout::broadcast},
    {{33, 7}, {}, Layout::plain},
    {{7, 1, 5}, {1}, Layout::plain},
    {{2, 1, 5, 3, 4}, {0, 2, 4}, Layout::plain},
    {{2, 3, 5, 3, 4}, {1, 3}, Layout::permuted},
    {{2, 3, 5, 3, 4}, {0, 1, 2, 3, 4}, Layout::sliced},
};

TEST_P(ForwardReduce, AnyAxes) {
  std::vector<Pending> all;
  std::uint64_t seed = 1;
  for (const Case& c : kCases) {
    double count = 1;
    for (int axis : c.axes) count *= static_cast<double>(c.shape[axis]);
    Shape squeezed;
    for (int i = 0; i < c.shape.rank(); ++i) {
      if (std::find(c.axes.begin(), c.axes.end(), i) == c.axes.end()) squeezed.push_back(c.shape[i]);
    }
    for (const DType type : supported(kNumericTypes)) {
      // One narrow and one wide type are enough beside f32 where each kernel takes a while to compile.
      if (is_vulkan() && ((is_integral(type) && type != DType::i32) || type == DType::bf16) &&
          c.shape.rank() != 2)
        continue;
      const Operand x = exact_operand(c.shape, c.layout, type, seed++);
      const std::string of =
          " of " + std::string(name(type)) + " " + c.shape.to_string() + " " + to_string(c.layout);
      const Host total = reduced(x.host, c.axes, 0, [](double a, double b) { return a + b; });
      Host average = total;
      for (double& v : average.values) v /= count;
      // A quotient of exact numbers.
      const Within quotient =
          is_half(type) ? half_units(type, 1) : Within{type == DType::f64 ? 0x1p-51 : 0x1p-22, 0};
      all.push_back({"sum" + of, sum(x.tensor, c.axes), Host(squeezed, total.values), {}});
      all.push_back({"mean" + of, mean(x.tensor, c.axes, true), average, quotient});
      all.push_back({"max" + of,
                     max(x.tensor, c.axes, true),
                     reduced(x.host, c.axes, -1e9, [](double a, double b) { return std::max(a, b); }),
                     {}});
      all.push_back({"min" + of,
                     min(x.tensor, c.axes, true),
                     reduced(x.host, c.axes, 1e9, [](double a, double b) { return std::min(a, b); }),
                     {}});
    }
  }
  check_all(all);
}

TEST_P(ForwardReduce, EmptyAndNarrow) {
  const LazyTensor none = LazyTensor::zeros(Shape{3, 0}, DType::f32);
  EXPECT_TRUE(agrees(sum(none, 1), Host(Shape{3}), {}));
  EXPECT_TRUE(agrees(sum(none), Host(Shape{}), {}));
  EXPECT_TRUE(agrees(sum(none, 0), Host(Shape{0}), {}));
  EXPECT_TRUE(agrees(max(none, 0, true), Host(Shape{1, 0}), {}));
  EXPECT_TRUE(std::isnan(mean(none).item<float>())) << "0 / 0";
  const LazyTensor truth = upload(Host(Shape{300}, std::vector<double>(300, 1)), DType::boolean, device());
  EXPECT_EQ(sum(truth).dtype(), DType::i32);
  EXPECT_EQ(sum(truth).item<std::int32_t>(), 300);
}

/// The elements are cast first, so what overflows is the type that was asked for.
TEST_P(ForwardReduce, InATypeThatIsNamed) {
  const std::vector<DType> types = supported({DType::i8});
  if (types.empty()) GTEST_SKIP() << "no int8 on " << device().to_string();
  const LazyTensor x = upload(Host(Shape{3}, {100, 100, 99}), DType::i8, device());
  EXPECT_EQ(sum(x, {}, DType::f32).dtype(), DType::f32);
  EXPECT_EQ(sum(x, {}, DType::f32).item<float>(), 299);
  EXPECT_EQ(sum(x, {}, DType::i8).item<std::int8_t>(), 299 - 256);
  EXPECT_EQ(sum(x, 0, DType::i32, true).shape(), Shape{1});
  EXPECT_EQ(prod(x, {}, DType::i32).item<std::int32_t>(), 990000);
  EXPECT_EQ(prod(x, {}, DType::i16).item<std::int16_t>(), 990000 % 65536);
}

TEST_P(ForwardReduce, FusedWithItsOperands) {
  const Operand x = exact_operand(Shape{33, 7}, Layout::permuted, DType::f32, 1);
  const Operand y = exact_operand(Shape{7}, Layout::reversed, DType::f32, 2);
  const Host expected = Host::from(Shape{33}, [&](const Index& at) {
    double total = 0;
    double top = -1e9;
    for (std::int64_t j = 0; j < 7; ++j) {
      const double product = x.host[{at[0], j}] * y.host[{j}];
      total += product;
      top = std::max(top, product);
    }
    return total - top * 2;
  });
  const LazyTensor product = x.tensor * y.tensor;
  EXPECT_TRUE(agrees(sum(product, 1) - max(product, 1) * 2, expected, {}));
}

TEST_P(ForwardReduce, RoundingStaysWithinItsBound) {
  const Operand x = random_operand(Shape{3, 1025}, Layout::plain, DType::f32, device(), 0.1, 9, true, 3);
  const Host expected = reduced(x.host, {1}, 0, [](double a, double b) { return a + b; });
  const Host sizes = reduced(x.host, {1}, 0, [](double a, double b) { return a + std::abs(b); });
  const std::vector<double> actual = download(sum(x.tensor, 1, true));
  // Any order of summation errs by less than (n - 1) units of the sum of sizes.
  for (std::size_t i = 0; i < actual.size(); ++i)
    EXPECT_NEAR(actual[i], expected.values[i], 1024 * 0x1p-24 * sizes.values[i]);
  EXPECT_EQ(download(sum(x.tensor, 1, true)), actual) << "the same bits each time";
}

// ---- matrix products
// ---------------------------------------------------------------------------------------------

/// Ranks of at least 2.
Host product(const Host& a, const Host& b) {
  const int batch = std::max(a.shape.rank(), b.shape.rank()) - 2;
  const std::int64_t inner = a.shape.back();
  Shape shape;
  for (int i = 0; i < batch; ++i) {
    const int ia = i - (batch + 2 - a.shape.rank());
    const int ib = i - (batch + 2 - b.shape.rank());
    const std::int64_t ea = ia < 0 ? 1 : a.shape[ia];
    shape.push_back(ea != 1 || ib < 0 ? ea : b.shape[ib]);
  }
  shape.push_back(a.shape[a.shape.rank() - 2]);
  shape.push_back(b.shape.back());
  return Host::from(shape, [&](Index at) {
    const std::int64_t column = at.back();
    const std::int64_t row = at[at.size() - 2];
    double total = 0;
    for (std::int64_t k = 0; k < inner; ++k) {
      Index ia(at);
      Index ib(at);
      ia.back() = ib[ib.size() - 2] = k;
      ia[ia.size() - 2] = row;
      ib.back() = column;
      // stretched() would also stretch a row or column extent of 1, whose index is 0 anyway.
      total += a.stretched(ia) * b.stretched(ib);
    }
    return total;
  });
}

struct ProductCase {
  Shape a;
  Layout la;
  Shape b;
  Layout lb;
};
const ProductCase kProducts[] = {
    {{1, 1}, Layout::plain, {1, 1}, Layout::plain},
    {{7, 33}, Layout::plain, {33, 5}, Layout::plain},
    {{7, 33}, Layout::permuted, {33, 5}, Layout::plain},
    {{7, 33}, Layout::plain, {33, 5}, Layout::permuted},
    {{7, 33}, Layout::sliced, {33, 5}, Layout::reversed},
    {{7, 33}, Layout::broadcast, {33, 5}, Layout::broadcast},
    {{1, 1025}, Layout::plain, {1025, 33}, Layout::plain},
    {{33, 1025}, Layout::permuted, {1025, 7}, Layout::permuted},
    {{65, 7}, Layout::plain, {7, 129}, Layout::permuted},
    {{33, 1}, Layout::plain, {1, 33}, Layout::plain},
    {{2, 7, 3}, Layout::plain, {2, 3, 5}, Layout::permuted},
    {{2, 7, 3}, Layout::permuted, {3, 5}, Layout::plain},
    {{7, 3}, Layout::plain, {4, 3, 5}, Layout::reversed},
    {{2, 1, 7, 3}, Layout::plain, {4, 3, 5}, Layout::sliced},
    {{3, 7, 33}, Layout::broadcast, {3, 33, 5}, Layout::plain},
    {{0, 3}, Layout::plain, {3, 2}, Layout::plain},
    {{2, 0}, Layout::plain, {0, 3}, Layout::plain},
    {{0, 2, 3}, Layout::plain, {1, 3, 2}, Layout::plain},
};

TEST_P(ForwardReduce, Matmul) {
  std::vector<Pending> all;
  std::uint64_t seed = 1;
  for (const ProductCase& c : kProducts) {
    for (const DType type : supported(kNumericTypes)) {
      const Operand a = exact_operand(c.a, c.la, type, seed++);
      const Operand b = exact_operand(c.b, c.lb, type, seed++);
      all.push_back({std::string(name(type)) + " " + c.a.to_string() + " " + to_string(c.la) + " @ " +
                         c.b.to_string() + " " + to_string(c.lb),
                     matmul(a.tensor, b.tensor),
                     product(a.host, b.host),
                     {}});
    }
  }
  check_all(all);
}

TEST_P(ForwardReduce, MatmulOfAsManyDimensionsAsThereMayBe) {
  const Operand a = exact_operand(Shape{1, 2, 1, 2, 1, 2, 3, 4}, Layout::plain, DType::f32, 1);
  const Operand b = exact_operand(Shape{1, 2, 1, 1, 1, 2, 4, 5}, Layout::plain, DType::f32, 2);
  const std::vector<float> got = matmul(a.tensor, b.tensor).to_vector<float>();
  const std::vector<float> left = a.tensor.to_vector<float>(), right = b.tensor.to_vector<float>();
  std::size_t at = 0;
  for (std::size_t batch = 0; batch < 8; ++batch) {
    const std::size_t other = batch / 4 * 2 + batch % 2;  // the middle one of three extents of 2 is broadcast
    for (std::size_t m = 0; m < 3; ++m) {
      for (std::size_t n = 0; n < 5; ++n) {
        float sum = 0;
        for (std::size_t k = 0; k < 4; ++k)
          sum += left[(batch * 3 + m) * 4 + k] * right[(other * 4 + k) * 5 + n];
        EXPECT_EQ(got.at(at++), sum);
      }
    }
  }
}

TEST_P(ForwardReduce, MatmulOfVectors) {
  for (const DType type : supported({DType::f32, DType::i32})) {
    const Operand v = exact_operand(Shape{33}, Layout::reversed, type, 1);
    const Operand w = exact_operand(Shape{33}, Layout::sliced, type, 2);
    const Operand m = exact_operand(Shape{2, 33, 5}, Layout::permuted, type, 3);
    const Operand n = exact_operand(Shape{2, 5, 33}, Layout::plain, type, 4);
    const Host row(Shape{1, 33}, v.host.values);
    const Host column(Shape{33, 1}, w.host.values);
    const auto shaped = [](const Host& h, const Shape& shape) { return Host(shape, h.values); };
    EXPECT_TRUE(agrees(matmul(v.tensor, w.tensor), shaped(product(row, column), Shape{}), {}));
    EXPECT_TRUE(agrees(matmul(v.tensor, m.tensor), shaped(product(row, m.host), Shape{2, 5}), {}));
    EXPECT_TRUE(agrees(matmul(n.tensor, w.tensor), shaped(product(n.host, column), Shape{2, 5}), {}));
    EXPECT_TRUE(agrees(matmul(n.tensor + 1, w.tensor * 2) - 3,  // with work before and after it
                       Host::from(Shape{2, 5},
                                  [&](const Index& at) {
                                    double total = -3;
                                    for (std::int64_t k = 0; k < 33; ++k)
                                      total += (n.host[{at[0], at[1], k}] + 1) * w.host[{k}] * 2;
                                    return total;
                                  }),
                       {}));
  }
}

}  // namespace
}  // namespace caldera::testing
