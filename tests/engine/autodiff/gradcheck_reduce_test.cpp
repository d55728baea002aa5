// Gradients of reductions, matrix products, gather and scatter-add against central differences in f64.
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "tests/support/transforms/transform_cases.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;
using ReductionFunction = LazyTensor (*)(const LazyTensor&, const Axes&, bool);

struct ReductionRow {
  const char* name;
  ReductionFunction function;
};
const ReductionRow kReductions[] = {{"sum", sum}, {"mean", mean}, {"max", max},
                                    {"min", min}, {"amax", amax}, {"amin", amin}};

TEST(GradcheckReduce, AnyAxesAndKeepdims) {
  const Shape shape{2, 3, 1, 5};
  const std::vector<Axes> kAxes = {Axes{},     Axes{0},     Axes{1},        Axes{2},         Axes{-1},
                                   Axes{0, 1}, Axes{-1, 0}, Axes{1, 2, -1}, Axes{0, 1, 2, 3}};
  for (const ReductionRow& row : kReductions) {
    for (std::size_t i = 0; i < kAxes.size(); ++i) {
      for (const bool keepdims : {false, true}) {
        check_case({std::string(row.name) + " over axes number " + std::to_string(i),
                    {{shape}},
                    [&](Inputs x) { return row.function(x[0], kAxes[i], keepdims); }});
      }
    }
  }
}

TEST(GradcheckReduce, AwkwardShapesAndLayouts) {
  for (const ReductionRow& row : kReductions) {
    for (const Shape& shape : {Shape{}, Shape{1}, Shape{7}, Shape{33}, Shape{7, 33}}) {
      check_case({std::string(row.name) + " of " + shape.to_string(), {{shape}}, [&](Inputs x) {
                    return row.function(x[0] * 1.5, Axes{}, false);
                  }});
    }
    for (const Layout layout : kLayouts) {
      // Equal elements of a broadcast operand share the gradient of an extremum, which has a kink there only
      // between elements that are different leaves.
      const Shape shape{3, 7};
      for (const int axis : {0, 1}) {
        check_case({std::string(row.name) + " of " + to_string(layout) + " along " + std::to_string(axis),
                    {{base_shape(shape, layout)}},
                    [&](Inputs x) { return row.function(view_of(x[0], shape, layout), axis, false); }});
      }
    }
    check_case({std::string(row.name) + " of products", {{Shape{4, 7}}, {Shape{7}}}, [&](Inputs x) {
                  const LazyTensor y = x[0] * x[1];
                  return y * row.function(y, -1, true) + row.function(x[0], 0, false);
                }});
  }
}

TEST(GradcheckReduce, EmptyOperands) {
  check_case({"sum to nothing", {{Shape{3, 0}}}, [](Inputs x) { return sum(x[0], 0); }});
  check_case({"sum of nothing", {{Shape{3, 0}}, {Shape{3}}}, [](Inputs x) { return sum(x[0], 1) + x[1]; }});
  check_case({"max over the axis that is not empty", {{Shape{3, 0}}}, [](Inputs x) { return max(x[0], 0); }});
}

TEST(GradcheckReduce, TiesShareTheGradientOrTheFirstHasIt) {
  const LazyTensor x = cpu_tensor({1, 3, 3, 2, 3, 0}, Shape{2, 3});
  const auto gradient = [&](const LazyTensor& y) { return grad(sum(y), x).to_vector<double>(); };
  EXPECT_EQ(gradient(max(x)), (std::vector<double>{0, 1. / 3, 1. / 3, 0, 1. / 3, 0}));
  EXPECT_EQ(gradient(max(x, {0, 1})), (std::vector<double>{0, 1. / 3, 1. / 3, 0, 1. / 3, 0}));
  EXPECT_EQ(gradient(max(x, -1)), (std::vector<double>{0, 1, 0, 0, 1, 0}));
  EXPECT_EQ(gradient(min(-x, 0)), (std::vector<double>{0, -1, -1, -1, 0, 0}));
  EXPECT_EQ(gradient(amax(x, -1)), (std::vector<double>{0, 0.5, 0.5, 0, 1, 0}));
  EXPECT_EQ(gradient(amin(-x, 0)), (std::vector<double>{0, -0.5, -1, -1, -0.5, 0}));
  const LazyTensor other = cpu_tensor({1, 4, 3, 1, 3, 1}, Shape{2, 3});
  EXPECT_EQ(gradient(maximum(x, other)), (std::vector<double>{0.5, 0, 0.5, 1, 0.5, 0}));
  EXPECT_EQ(gradient(minimum(x, other)), (std::vector<double>{0.5, 1, 0.5, 0, 0.5, 1}));
}

struct Product {
  Shape a;
  Shape b;
};

TEST(GradcheckMatmul, ShapesAndBatches) {
  const Product kProducts[] = {{{1, 1}, {1, 1}},       {{7, 3}, {3, 5}},    {{3}, {3}},
                               {{3}, {3, 5}},          {{4, 3}, {3}},       {{2, 4, 3}, {2, 3, 5}},
                               {{2, 4, 3}, {3, 5}},    {{4, 3}, {2, 3, 5}}, {{2, 1, 2, 3}, {4, 3, 2}},
                               {{1, 2, 3}, {4, 3, 2}}, {{3}, {2, 3, 5}},    {{2, 2, 4, 3}, {3}},
                               {{2, 4, 3}, {3}},       {{7, 33}, {33, 2}},  {{0, 3}, {3, 2}},
                               {{2, 3}, {3, 0}},       {{2, 0}, {0, 3}},    {{0, 2, 3}, {3, 2}},
                               {{0, 2, 3}, {1, 3, 2}}};
  for (const auto& [a, b] : kProducts) {
    check_case(
        {a.to_string() + " @ " + b.to_string(), {{a}, {b}}, [](Inputs x) { return matmul(x[0], x[1]); }});
  }
}

TEST(GradcheckMatmul, StridedOperands) {
  for (const Layout left : kLayouts) {
    for (const Layout right : kLayouts) {
      const Shape a{4, 3};
      const Shape b{3, 5};
      check_case({to_string(left) + " @ " + to_string(right),
                  {{base_shape(a, left)}, {base_shape(b, right)}},
                  [&](Inputs x) { return matmul(view_of(x[0], a, left), view_of(x[1], b, right)); }});
    }
    const Shape a{2, 4, 3};
    check_case({to_string(left) + " batch", {{base_shape(a, left)}, {Shape{2, 5, 3}}}, [&](Inputs x) {
                  return matmul(view_of(x[0], a, left), transpose(x[1]));
                }});
  }
}

TEST(GradcheckMatmul, SharedAndChained) {
  check_case({"x @ x", {{Shape{4, 4}}}, [](Inputs x) { return matmul(x[0], x[0]); }});
  check_case({"x @ x^T", {{Shape{4, 3}}}, [](Inputs x) { return matmul(x[0], transpose(x[0])); }});
  check_case({"v . v", {{Shape{7}}}, [](Inputs x) { return matmul(x[0], x[0]); }});
  check_case({"chain", {{Shape{2, 3}}, {Shape{3, 4}}, {Shape{4, 2}}}, [](Inputs x) {
                return matmul(tanh(matmul(x[0], x[1])), x[2]) + matmul(x[0], matmul(x[1], x[2]));
              }});
  check_case({"heads", {{Shape{2, 3, 4}}, {Shape{2, 3, 4}}}, [](Inputs x) {
                const auto heads = [](const LazyTensor& t) {
                  return permute_dims(reshape(t, Shape{2, 3, 2, 2}), {0, 2, 1, 3});
                };
                return matmul(heads(x[0]), transpose(heads(x[1])));
              }});
}

LazyTensor indices(const std::vector<std::int32_t>& values, const Shape& shape) {
  return LazyTensor::from_vector(values, shape, Device::cpu());
}

struct IndexGradRow {
  const char* name;
  Shape shape;
  std::vector<std::int32_t> values;
};
// All below the smallest extent that is indexed, 3.
const IndexGradRow kIndexGrads[] = {{"one", {}, {2}},
                                    {"repeated", {5}, {2, 0, 2, 2, 1}},
                                    {"of rank 2", {2, 3}, {0, 1, 2, 2, 0, 0}},
                                    {"none", {0}, {}}};

TEST(GradcheckIndexing, TakeAlongEachAxis) {
  const Shape shape{3, 4, 3};
  for (const IndexGradRow& row : kIndexGrads) {
    for (int axis = -1; axis < 3; ++axis) {
      check_case({std::string(row.name) + " along " + std::to_string(axis), {{shape}}, [&](Inputs x) {
                    return take(x[0], indices(row.values, row.shape), axis);
                  }});
    }
    for (const Layout layout : kLayouts) {
      check_case(
          {std::string(row.name) + " of " + to_string(layout), {{base_shape(shape, layout)}}, [&](Inputs x) {
             return take(view_of(x[0], shape, layout), indices(row.values, row.shape), 1) * 2.0;
           }});
    }
  }
}

TEST(GradcheckIndexing, ScatterAddAlongEachAxis) {
  const Shape shape{3, 4, 3};
  for (const IndexGradRow& row : kIndexGrads) {
    for (int axis = 0; axis < 3; ++axis) {
      Shape updates;
      for (int i = 0; i < 3; ++i) {
        if (i != axis) updates.push_back(shape[i]);
        if (i == axis) {
          for (std::int64_t extent : row.shape) updates.push_back(extent);
        }
      }
      for (const Layout layout : kLayouts) {
        check_case({std::string(row.name) + " along " + std::to_string(axis) + ", " + to_string(layout),
                    {{base_shape(shape, layout)}, {base_shape(updates, layout)}},
                    [&](Inputs x) {
                      const LazyTensor out =
                          scatter_add(view_of(x[0], shape, layout), indices(row.values, row.shape),
                                      view_of(x[1], updates, layout), axis);
                      return out * out;
                    }});
      }
    }
  }
}

TEST(GradcheckIndexing, IndicesOutsideGiveNoGradient) {
  const LazyTensor x = cpu_tensor({1, 2, 3}, Shape{3});
  const LazyTensor which = indices({0, 7, -1, 2}, Shape{4});
  const LazyTensor weights = cpu_tensor({1, 10, 100, 1000}, Shape{4});
  // The value is NaN at indices outside; select it away, as a mask does.
  const LazyTensor kept =
      where(logical_or(which == 7, which == -1), zeros_like(weights), take(x, which) * weights);
  EXPECT_EQ(grad(sum(kept), x).to_vector<double>(), (std::vector<double>{1, 0, 1000}));
  EXPECT_EQ(grad(sum(scatter_add(x, which, weights)), x).to_vector<double>(), (std::vector<double>{1, 1, 1}));
}

}  // namespace
}  // namespace caldera::testing
