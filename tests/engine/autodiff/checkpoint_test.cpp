// checkpoint: the same values and gradients to the bit, for less memory, in and around all other transforms.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "engine/caldera.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/messages.h"
#include "tests/support/op_setting.h"
#include "tests/support/transforms/gradcheck.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;
using Doubles = std::vector<double>;
using Tensors = std::vector<LazyTensor>;

class Checkpoint : public OpTest {
 protected:
  // A plan may take a MiB more than it needs to run dispatches side by side: that is four values here.
  static constexpr std::int64_t kUnit = std::int64_t{256} << 10;  // bytes of a value of the chain
  static constexpr std::int64_t kWidth = 32;
  static constexpr std::int64_t kRows = kUnit / kWidth / 4;

  LazyTensor rows_of(std::int64_t rows, std::uint64_t seed) const {
    const Shape shape{rows, kWidth};
    return upload(stored(Host(shape, random_values(shape.numel(), 0.01, 0.2, true, seed)), DType::f32),
                  DType::f32, device());
  }
  /// A chain of `segments` times `layers` products.
  static LazyTensor chain(const LazyTensor& x, const LazyTensor& w, int segments, int layers, bool checked) {
    const UnaryFunction segment = [&](const LazyTensor& a) {
      LazyTensor h = a;
      for (int i = 0; i < layers; ++i) h = tanh(matmul(h, w));
      return h;
    };
    LazyTensor y = x;
    for (int i = 0; i < segments; ++i) y = checked ? checkpoint(segment)(y) : segment(y);
    return y;
  }
  static LazyTensor slope(const LazyTensor& y, const LazyTensor& x) { return grad(sum(y * y), x); }
};
INSTANTIATE_TEST_SUITE_P(Devices, Checkpoint, ::testing::ValuesIn(op_settings()), op_setting_name);

/// Equal but for rounding: what is computed again may be fused with other neighbours.
void expect_close(const std::vector<float>& actual, const std::vector<float>& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  float largest = 0;
  for (const float value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], 1e-5F * largest) << "element " << i;
}

TEST_P(Checkpoint, KeepsLessForTheBackwardPassAndGivesTheSame) {
  const LazyTensor x = rows_of(kRows, 1), w = rows_of(kWidth, 2);
  const LazyTensor forward = chain(x, w, 6, 6, false);
  const LazyTensor plain = slope(forward, x);
  const LazyTensor checked = slope(chain(x, w, 6, 6, true), x);
  const auto plain_plan = plan_for({plain}), checked_plan = plan_for({checked});
  // Plain, every layer's value waits for the way back. Checked, those at the seams do, and those of one
  // segment.
  EXPECT_GE(plain_plan->arena_bytes, 35 * kUnit);
  EXPECT_LE(checked_plan->arena_bytes, 20 * kUnit);
  const std::size_t once = plan_for({forward})->steps.size(), steps = checked_plan->steps.size();
  EXPECT_GT(steps, plain_plan->steps.size() + once / 2) << "the layers run again";
  EXPECT_LE(steps, plain_plan->steps.size() + once) << "and nothing else does";
  expect_close(checked.to_vector<float>(), plain.to_vector<float>());
}

TEST_P(Checkpoint, OfElementwiseLayersThatFuseIsNotJoinedWithTheForwardPass) {
  // Forward and recomputed kernels read the same tensor over the same space, and would be one kernel if the
  // barrier did not stand between them.
  const LazyTensor x = rows_of(kRows, 1), w = rows_of(kWidth, 2);
  const auto gradient = [&](bool checked) {
    const UnaryFunction segment = [&](const LazyTensor& a) {
      return tanh(matmul(exp(sin(a * 0.5) * 0.3), w)) + cos(a) * sum(exp(a), -1, true) * 0.01;
    };
    LazyTensor y = x;
    for (int i = 0; i < 8; ++i) y = checked ? checkpoint(segment)(y) : segment(y);
    return grad(sum(y * y), x);
  };
  const LazyTensor plain = gradient(false), checked = gradient(true);
  EXPECT_LT(plan_for({checked})->arena_bytes, plan_for({plain})->arena_bytes);
  expect_close(checked.to_vector<float>(), plain.to_vector<float>());
}

TEST_P(Checkpoint, CostsNothingForward) {
  const LazyTensor x = rows_of(kRows, 1);
  const UnaryFunction layer = [](const LazyTensor& a) { return exp(a) * 2.0; };
  const LazyTensor y = checkpoint(layer)(checkpoint(layer)(x)) + 1.0;
  EXPECT_EQ(plan_for({y})->steps.size(), plan_for({layer(layer(x)) + 1.0})->steps.size());
}

std::int64_t product_count(const LazyTensor& y) {
  const auto plan = plan_for({y});
  return std::ranges::count_if(plan->steps, [](const Step& s) { return s.is<ContractStep>(); });
}

TEST_P(Checkpoint, KeepsWhatItsStrategyChooses) {
  const LazyTensor x = rows_of(kRows, 1), w = rows_of(kWidth, 2);
  constexpr int kLayers = 4, kSegments = 5;
  const auto gradient = [&](const Keep& keep) {
    const UnaryFunction segment = [&](const LazyTensor& a) {
      LazyTensor h = a;
      for (int i = 0; i < kLayers; ++i) h = tanh(name(matmul(sin(h), w), i % 2 == 0 ? "even" : "odd"));
      return h;
    };
    LazyTensor y = x;
    for (int i = 0; i < kSegments; ++i) y = checkpoint(segment, keep)(y);
    return slope(y, x);
  };
  const LazyTensor all = gradient(keep::everything()), none = gradient(keep::nothing());
  const LazyTensor products = gradient(keep::products()), linear = gradient(keep::products_without_batch());
  const LazyTensor even = gradient(keep::named({"even"})), odd = gradient(keep::all_but({"even"}));
  // Forward and backward products, and those that are computed again.
  const std::int64_t once = 2 * kLayers * kSegments;
  EXPECT_EQ(product_count(all), once);
  EXPECT_EQ(product_count(products), once);
  EXPECT_EQ(product_count(linear), once);
  EXPECT_EQ(product_count(none), once + kLayers * kSegments);
  EXPECT_EQ(product_count(even), once + kLayers * kSegments / 2) << "the odd ones run again";
  EXPECT_EQ(product_count(odd), once) << "what is computed of the even ones is kept";
  EXPECT_LT(plan_for({none})->arena_bytes, plan_for({all})->arena_bytes);
  const std::vector<float> expected = all.to_vector<float>();
  for (const LazyTensor& g : {none, products, linear, even, odd})
    expect_close(g.to_vector<float>(), expected);
}

TEST(CheckpointGradients, OfSecondOrderWithWhatIsKept) {
  const Tensors at{vector_of({0.3, -0.7, 1.1})};
  const auto curvature = [&](const Keep& keep) {
    const UnaryFunction f = checkpoint(
        UnaryFunction([](const LazyTensor& a) { return exp(name(sin(a) * a, "h")) * cos(a); }), keep);
    const TensorFunction slopes = [=](Inputs a) {
      return sum(value_and_grad([=](Inputs b) { return sum(f(b[0])); }, a).second[0] * a[0]);
    };
    return value_and_grad(slopes, at).second[0].to_vector<double>();
  };
  const Doubles plain = curvature(keep::everything());
  for (const Keep& keep : {keep::named({"h"}), keep::nothing()}) {
    const Doubles values = curvature(keep);
    for (std::size_t i = 0; i < plain.size(); ++i) EXPECT_NEAR(values[i], plain[i], 1e-14) << i;
  }
}

TEST(CheckpointGradients, RefuseAChoiceThatSaysTooLittle) {
  const LazyTensor x = vector_of({1, 2});
  const UnaryFunction f = checkpoint(UnaryFunction([](const LazyTensor& a) { return exp(a); }),
                                     Keep([](std::span<const InnerValue>) { return std::vector<bool>(7); }));
  EXPECT_THROW(grad(sum(f(x)), x), ValueError);
  EXPECT_THROW(name(x, ""), ValueError);
}

TEST_P(Checkpoint, OfWhatOnlyPassesItsArgumentOn) {
  const LazyTensor x = rows_of(kRows, 1);
  const LazyTensor y = checkpoint(UnaryFunction([](const LazyTensor& a) { return a; }))(x);
  EXPECT_EQ(grad(sum(y * y), x).to_vector<float>(), (x * 2.0).to_vector<float>());
}

// ---- what it differentiates

Doubles gradients_of(const TensorFunction& function, const Tensors& at) {
  Doubles all;
  for (const LazyTensor& g : value_and_grad(function, at).second) {
    const Doubles values = g.to_vector<double>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

TEST(CheckpointGradients, OfWhatTheFunctionCaptures) {
  const Tensors at{vector_of({1, 2}), vector_of({3, 5}), vector_of({0.5, 0.25})};
  const auto function = [](bool checked) -> TensorFunction {
    return [=](Inputs a) {
      // w and its multiple are captured, x is computed of w, and w is used outside too.
      const LazyTensor w = a[1], twice = a[1] * 2.0, b = a[2];
      const VectorFunction inside = [=](Inputs y) {
        return Tensors{sin(y[0] * w) * twice + w, b, y[0] * twice, b * b};
      };
      const LazyTensor x = a[0] * w;
      const Tensors y = checked ? checkpoint(inside)({&x, 1}) : inside({&x, 1});
      return sum(y[0] * y[2] + y[1] * w) + sum(y[3]);
    };
  };
  EXPECT_EQ(gradients_of(function(true), at), gradients_of(function(false), at));
}

TEST(CheckpointGradients, OfIntegersRandomTensorsAndUnusedResults) {
  const Tensors at{vector_of({1, 2, 3})};
  const LazyTensor which = LazyTensor::from_vector<std::int32_t>({2, 0}, Shape{2}, Device::cpu());
  const auto function = [&](bool checked) -> TensorFunction {
    return [&, checked](Inputs a) {
      const VectorFunction inside = [](Inputs y) {
        const LazyTensor noise = random_normal(Shape{2}, 3, DType::f64, Device::cpu());
        return Tensors{take(exp(y[0]), y[1] + 0) * noise, y[1] * 2, astype(y[0] > 1.5, DType::i32)};
      };
      const Tensors given{a[0], which};
      const Tensors y = checked ? checkpoint(inside)(given) : inside(given);
      return sum(where(y[1] > 0, y[0], y[0] * 3.0));
    };
  };
  EXPECT_EQ(gradients_of(function(true), at), gradients_of(function(false), at));
}

TEST(CheckpointGradients, OfResultsOfWhichOneIsNotAskedFor) {
  // Evaluation meets a call whose other value is outside of what it walks.
  LazyTensor unused;
  const VectorFunction two = [&](Inputs a) {
    unused = a[0] * 3.0;
    return Tensors{a[0] * 2.0, unused};
  };
  const LazyTensor x = vector_of({1, 2});
  LazyTensor y = checkpoint(two)({&x, 1})[0];
  LazyTensor late = x;
  for (int i = 0; i < 20000; ++i) late = late + 1.0;
  plan_for({late + unused});  // a walk on which it comes late
  unused = LazyTensor();
  y = y + 1.0;
  EXPECT_EQ(y.to_vector<double>(), (Doubles{3, 5}));
}

TEST(CheckpointGradients, AllowEvaluationInside) {
  const Tensors at{vector_of({1, 2})};
  const TensorFunction layer = [](Inputs a) {
    const LazyTensor y = (a[0] * a[0]).eval();
    return sum(y).item<double>() > 0 ? exp(y) * y : y;
  };
  const auto total = [](const TensorFunction& f) -> TensorFunction {
    return [=](Inputs a) { return sum(f(a)); };
  };
  EXPECT_EQ(gradients_of(total(checkpoint(layer)), at), gradients_of(total(layer), at));
}

TEST(CheckpointGradients, OfCheckpointsInside) {
  const Tensors at{vector_of({0.1, 0.2})};
  const UnaryFunction layer = [](const LazyTensor& a) { return sin(a) * exp(a); };
  const UnaryFunction two = [&](const LazyTensor& a) { return checkpoint(layer)(checkpoint(layer)(a)); };
  const TensorFunction plain = [&](Inputs a) { return sum(layer(layer(layer(layer(a[0]))))); };
  const TensorFunction checked = [&](Inputs a) { return sum(checkpoint(two)(checkpoint(two)(a[0]))); };
  EXPECT_EQ(gradients_of(checked, at), gradients_of(plain, at));
}

TEST(CheckpointGradients, OfACustomGradientInside) {
  const Tensors at{vector_of({1, 2})};
  const TensorFunction odd =
      custom_vjp([](Inputs a) { return a[0] * a[0]; },
                 [](Inputs a, const LazyTensor&, const LazyTensor& g) { return Tensors{g * a[0] * 3.0}; });
  const TensorFunction function = [&](Inputs a) {
    return sum(checkpoint(TensorFunction([&](Inputs b) { return odd(Tensors{b[0] * 2.0}) * 5.0; }))(a));
  };
  EXPECT_EQ(gradients_of(function, at), (Doubles{5 * 3 * 2 * 2, 5 * 3 * 4 * 2}));
}

TEST(CheckpointGradients, OfManyCallsInARow) {
  const UnaryFunction layer = [](const LazyTensor& a) { return a * 0.5 + sin(a); };
  const auto gradient = [&](bool checked) {
    const LazyTensor x = vector_of({0.1, 0.2});
    LazyTensor y = x;
    for (int i = 0; i < 300; ++i) y = checked ? checkpoint(layer)(y) : layer(y);
    return grad(sum(y), x).to_vector<double>();
  };
  EXPECT_EQ(gradient(true), gradient(false));
}

// ---- nesting

LazyTensor rosenbrock(const LazyTensor& x) {
  const UnaryFunction terms = [](const LazyTensor& a) {
    const LazyTensor head = slice(a, -1, 0, -1), tail = slice(a, -1, 1, std::nullopt);
    return 100 * square(tail - head * head) + square(1 - head);
  };
  return sum(checkpoint(terms)(x));
}

TEST(CheckpointNesting, TheHessianMatchesItsClosedForm) {
  const Doubles x{-1.2, 1};
  const Doubles expected{1200 * x[0] * x[0] - 400 * x[1] + 2, -400 * x[0], -400 * x[0], 200};
  const LazyTensor at = vector_of(x);
  const auto near = [&](const LazyTensor& actual) {
    const Doubles values = actual.to_vector<double>();
    for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(values[i], expected[i], 1e-10) << i;
  };
  near(hessian(rosenbrock, at));
  for (const JacobianMode outer : {JacobianMode::reverse, JacobianMode::forward}) {
    for (const JacobianMode inner : {JacobianMode::reverse, JacobianMode::forward}) {
      near(jacobian(jacobian(rosenbrock, inner), at, outer));
    }
  }
  const LazyTensor both = vmap(hessian(UnaryFunction(rosenbrock)))(stack({at, at}));
  near(slice(both, 0, 0, 1));
  near(slice(both, 0, 1, 2));
}

TEST(CheckpointNesting, InAndAroundVmap) {
  const LazyTensor x = cpu_tensor(random_values(6, 0.1, 0.5, true, 1), {2, 3});
  const LazyTensor w = cpu_tensor(random_values(9, 0.1, 0.5, true, 2), {3, 3});
  const TensorFunction layer = [](Inputs a) { return tanh(matmul(a[1], a[0])) * sum(a[0]); };
  const auto total = [&](const TensorFunction& one) -> TensorFunction {
    return [=](Inputs a) { return sum(square(one(Tensors{a[0], a[1]}))); };
  };
  const MapAxes axes{0, kUnmapped};
  const Doubles expected = gradients_of(total(vmap(layer, axes)), {x, w});
  EXPECT_EQ(gradients_of(total(vmap(checkpoint(layer), axes)), {x, w}), expected);
  EXPECT_EQ(gradients_of(total(checkpoint(vmap(layer, axes))), {x, w}), expected);
  const auto slopes = [&](const TensorFunction& one) {
    return vmap(VectorFunction([&](Inputs a) { return value_and_grad(total(one), a).second; }),
                axes)(Tensors{x, w})[1]
        .to_vector<double>();
  };
  EXPECT_EQ(slopes(checkpoint(layer)), slopes(layer));
}

TEST(CheckpointNesting, ReverseOverForwardComputesTheTangentsAgainToo) {
  // The chain's tangent, differentiated: without its own checkpoint it would keep every layer.
  const auto values = [](const Shape& shape, std::uint64_t seed) {
    return cpu_tensor(random_values(shape.numel(), 0.01, 0.2, true, seed), shape);
  };
  const LazyTensor x = values({1024, 32}, 1), v = values({1024, 32}, 3), w = values({32, 32}, 2);
  const auto slope = [&](bool checked) {
    const TensorFunction along = [&](Inputs a) {
      const TensorFunction chain = [&](Inputs b) {
        const UnaryFunction segment = [&](const LazyTensor& c) {
          LazyTensor h = c;
          for (int i = 0; i < 5; ++i) h = tanh(matmul(h, w));
          return h;
        };
        LazyTensor y = b[0];
        for (int i = 0; i < 5; ++i) y = checked ? checkpoint(segment)(y) : segment(y);
        return sum(y * y);
      };
      return jvp(chain, a, {&v, 1}).second;
    };
    return value_and_grad(along, {&x, 1}).second[0];
  };
  const LazyTensor plain = slope(false), checked = slope(true);
  EXPECT_LT(plan_for({checked})->arena_bytes * 3, plan_for({plain})->arena_bytes * 2);
  const Doubles ours = checked.to_vector<double>(), theirs = plain.to_vector<double>();
  for (std::size_t i = 0; i < ours.size(); ++i) ASSERT_NEAR(ours[i], theirs[i], 1e-12) << "element " << i;
}

TEST(CheckpointNesting, ReverseOverReverseComputesTheBackwardPassAgainToo) {
  const auto values = [](const Shape& shape, std::uint64_t seed) {
    return cpu_tensor(random_values(shape.numel(), 0.01, 0.2, true, seed), shape);
  };
  const LazyTensor x = values({1024, 32}, 1), v = values({1024, 32}, 3), w = values({32, 32}, 2);
  const auto product = [&](bool checked) {
    const TensorFunction along = [&](Inputs a) {
      const TensorFunction chain = [&](Inputs b) {
        const UnaryFunction segment = [&](const LazyTensor& c) {
          LazyTensor h = c;
          for (int i = 0; i < 6; ++i) h = tanh(matmul(h, w));
          return h;
        };
        LazyTensor y = b[0];
        for (int i = 0; i < 6; ++i) y = checked ? checkpoint(segment)(y) : segment(y);
        return sum(y * y);
      };
      return sum(value_and_grad(chain, a).second[0] * v);
    };
    return value_and_grad(along, {&x, 1}).second[0];
  };
  const LazyTensor plain = product(false), checked = product(true);
  EXPECT_LT(plan_for({checked})->arena_bytes * 3, plan_for({plain})->arena_bytes * 2);
  const Doubles ours = checked.to_vector<double>(), theirs = plain.to_vector<double>();
  for (std::size_t i = 0; i < ours.size(); ++i) ASSERT_NEAR(ours[i], theirs[i], 1e-12) << "element " << i;
}

TEST(CheckpointNesting, ThirdDerivativesOfCapturedAndSharedTensors) {
  const Tensors at{vector_of({0.3, -0.2}), vector_of({0.7, 0.4})};
  const auto third = [&](bool checked) {
    const TensorFunction function = [=](Inputs a) {
      const LazyTensor& w = a[1];
      const UnaryFunction inside = [w](const LazyTensor& y) { return sin(y * w) * y + w * w * w; };
      const UnaryFunction f = checked ? checkpoint(inside) : inside;
      return sum(f(f(a[0])) * a[0]);
    };
    const auto slope = [](const TensorFunction& f) -> TensorFunction {
      return [f](Inputs a) {
        const Tensors grads = value_and_grad(f, a).second;
        return sum(grads[0] * 2.0 + grads[1] * grads[0]);
      };
    };
    return gradients_of(slope(slope(function)), at);
  };
  const Doubles ours = third(true), theirs = third(false);
  ASSERT_EQ(ours.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(ours[i], theirs[i], 1e-12 * (1 + std::abs(theirs[i])));
}

}  // namespace
}  // namespace caldera::testing
