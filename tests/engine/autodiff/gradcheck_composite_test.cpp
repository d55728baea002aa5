// Gradients of composites against central differences in f64.
#include <gtest/gtest.h>

#include <vector>

#include "ops/loss/cross_entropy.h"
#include "ops/nn/optimizer_updates.h"
#include "tests/support/transforms/transform_cases.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;

struct AlongAxis {
  const char* name;
  LazyTensor (*function)(const LazyTensor&, AxisIndex);
};
const AlongAxis kAlongAxis[] = {
    {"softmax", softmax},
    {"log_softmax", log_softmax},
    {"logsumexp", [](const LazyTensor& x, AxisIndex axis) { return logsumexp(x, axis); }},
    {"logsumexp with keepdims", [](const LazyTensor& x, AxisIndex axis) { return logsumexp(x, axis, true); }},
    {"softmax by hand",
     [](const LazyTensor& x, AxisIndex axis) {  // the gradient passes through the maximum here, and cancels
       const LazyTensor e = exp(x - max(x, axis, true));
       return e / sum(e, axis, true);
     }},
};

TEST(GradcheckComposite, SoftmaxAndItsRelatives) {
  for (const AlongAxis& row : kAlongAxis) {
    for (const Shape& shape : {Shape{1}, Shape{7}, Shape{33}, Shape{3, 7}, Shape{2, 3, 4}, Shape{0, 3}}) {
      for (const int axis : {-1, 0}) {
        if (shape[axis == 0 ? 0 : shape.rank() - 1] == 0) continue;
        check_case({std::string(row.name) + " of " + shape.to_string() + " along " + std::to_string(axis),
                    {{shape}},
                    [&](Inputs x) { return row.function(x[0] * 3.0, axis); }});
      }
    }
    for (const Layout layout : kLayouts) {
      const Shape shape{3, 5};
      check_case({std::string(row.name) + " of " + to_string(layout),
                  {{base_shape(shape, layout)}},
                  [&](Inputs x) { return row.function(view_of(x[0], shape, layout), -1); }});
    }
  }
}

TEST(GradcheckComposite, Norms) {
  for (const Shape& shape : {Shape{7}, Shape{1, 33}, Shape{2, 3, 5}, Shape{0, 3}}) {
    const Shape features{shape.back()};
    const std::string of = " of " + shape.to_string();
    check_case({"rms_norm" + of, {{shape}}, [](Inputs x) { return rms_norm(x[0], 1e-2); }});
    check_case({"rms_norm with weight" + of, {{shape}, {features}}, [](Inputs x) {
                  return rms_norm(x[0], 1e-2, x[1]);
                }});
    check_case({"layer_norm" + of, {{shape}}, [](Inputs x) { return layer_norm(x[0], 1e-2); }});
    check_case({"layer_norm with weight" + of, {{shape}, {features}}, [](Inputs x) {
                  return layer_norm(x[0], 1e-2, x[1]);
                }});
    check_case({"layer_norm with weight and bias" + of, {{shape}, {features}, {features}}, [](Inputs x) {
                  return layer_norm(x[0], 1e-2, x[1], x[2]);
                }});
  }
  for (const Layout layout : kLayouts) {
    const Shape shape{3, 5};
    check_case({"rms_norm of " + to_string(layout), {{base_shape(shape, layout)}, {Shape{5}}}, [&](Inputs x) {
                  return rms_norm(view_of(x[0], shape, layout), 1e-2, x[1]);
                }});
    check_case({"layer_norm of " + to_string(layout),
                {{base_shape(shape, layout)}, {Shape{5}}},
                [&](Inputs x) { return layer_norm(view_of(x[0], shape, layout), 1e-2, x[1], x[1]); }});
  }
}

TEST(GradcheckComposite, Lora) {
  for (const Shape& shape : {Shape{5}, Shape{1, 5}, Shape{7, 5}, Shape{2, 3, 5}, Shape{2, 1, 3, 5}}) {
    for (const std::int64_t rank : {1, 3}) {
      const Shape a{5, rank};
      const Shape b{rank, 4};
      check_case({"lora_delta of " + shape.to_string(), {{shape}, {a}, {b}}, [](Inputs x) {
                    return lora_delta(x[0], x[1], x[2], 0.7);
                  }});
    }
  }
  check_case(
      {"a frozen product beside it, chained", {{Shape{3, 5}}, {Shape{5, 2}}, {Shape{2, 5}}}, [](Inputs x) {
         const LazyTensor w = cpu_tensor(random_values(25, 0.1, 0.6, true, 3), Shape{5, 5});
         const auto layer = [&](const LazyTensor& y) {
           return matmul(y, w) + lora_delta(y, x[1], x[2], 0.5);
         };
         return layer(tanh(layer(x[0])));
       }});
}

TEST(GradcheckComposite, SwigluAndAttention) {
  check_case({"swiglu", {{Shape{3, 4}}, {Shape{4, 5}}, {Shape{4, 5}}}, [](Inputs x) {
                return silu(matmul(x[0], x[1])) * matmul(x[0], x[2]);
              }});
  check_case({"causal attention", {{Shape{2, 4, 3}}, {Shape{2, 4, 3}}, {Shape{2, 4, 3}}}, [](Inputs x) {
                const Shape square{4, 4};
                const LazyTensor row = iota(square, 0, DType::i32, Device::cpu());
                const LazyTensor column = iota(square, 1, DType::i32, Device::cpu());
                const LazyTensor scores = matmul(x[0], transpose(x[1])) * 0.5;
                return matmul(softmax(where(row >= column, scores, -1e30)), x[2]);
              }});
}

TEST(GradcheckComposite, Losses) {
  const LazyTensor targets =
      LazyTensor::from_vector<std::int32_t>({0, 4, 2, -100, 2, 1}, Shape{2, 3}, Device::cpu());
  for (const double smoothing : {0.0, 0.1}) {
    check_case({"mean_cross_entropy", {{Shape{2, 3, 5}}}, [&](Inputs x) {
                  return mean_cross_entropy(x[0] * 2.0, targets,
                                            {.ignore_index = -100, .label_smoothing = smoothing});
                }});
  }
  check_case({"cross_entropy_terms", {{Shape{2, 3, 5}}}, [&](Inputs x) {
                return cross_entropy_terms(x[0], targets, {.ignore_index = -100}).losses;
              }});
  check_case({"weighted_mean", {{Shape{7}}, {positive(Shape{7})}}, [](Inputs x) {
                return weighted_mean(x[0] * x[0], x[1]);
              }});
  check_case({"one_hot", {{Shape{5}}}, [&](Inputs x) {
                return sum(one_hot(maximum(targets, 0), 5, DType::f64) * x[0] * x[0], -1);
              }});
}

TEST(GradcheckComposite, OptimiserUpdates) {
  check_case({"adamw", {{Shape{7}}, {Shape{7}}, {Shape{7}}, {positive(Shape{7})}}, [](Inputs x) {
                const AdamWUpdate next =
                    adamw_update(x[0], x[1], x[2], x[3], {.learning_rate = 0.1, .step = 3});
                return concatenate({next.param, next.m, next.v});
              }});
}

TEST(GradcheckComposite, ThirdDerivative) {
  const TensorFunction cube = [](Inputs x) { return sin(x[0]) * exp(x[0] * 0.5) / (x[0] * x[0] + 1.0); };
  EXPECT_TRUE(gradients_agree(gradient_function(gradient_function(cube), 6), {{Shape{7}}}));
}

}  // namespace
}  // namespace caldera::testing
