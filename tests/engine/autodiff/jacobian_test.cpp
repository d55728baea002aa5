// Jacobians and Hessians against closed forms, in every mode and nested.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/caldera.h"
#include "tests/support/messages.h"
#include "tests/support/transforms/gradcheck.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;
using Doubles = std::vector<double>;
constexpr JacobianMode kModes[] = {JacobianMode::smaller, JacobianMode::reverse, JacobianMode::forward};

void expect_near(const LazyTensor& actual, const Doubles& expected, double tolerance = 1e-13) {
  const Doubles values = actual.to_vector<double>();
  ASSERT_EQ(values.size(), expected.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_NEAR(values[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << "element " << i;
  }
}

TEST(Jacobian, OfALinearMapIsItsMatrix) {
  const Shape tall{4, 3}, wide{2, 3};
  for (const Shape& shape : {tall, wide}) {
    const LazyTensor w = cpu_tensor(random_values(shape.numel(), 0.5, 1.5, true, 1), shape);
    const LazyTensor x = vector_of({1, 2, 3});
    for (const JacobianMode mode : kModes) {
      const LazyTensor j = jacobian([&](const LazyTensor& a) { return matmul(w, a); }, x, mode);
      EXPECT_EQ(j.shape(), shape);
      EXPECT_EQ(j.to_vector<double>(), w.to_vector<double>());
    }
  }
}

TEST(Jacobian, OfSoftmaxMatchesItsClosedForm) {
  const LazyTensor x = vector_of({0.3, -1, 0.7, 2});
  const Doubles p = softmax(x).to_vector<double>();
  Doubles expected;
  for (std::size_t i = 0; i < 4; ++i) {
    for (std::size_t k = 0; k < 4; ++k) expected.push_back(p[i] * ((i == k ? 1 : 0) - p[k]));
  }
  const UnaryFunction by_hand = [](const LazyTensor& a) {
    const LazyTensor e = exp(a - max(a, -1, true));
    return e / sum(e, -1, true);
  };
  for (const JacobianMode mode : kModes) {
    expect_near(jacobian([](const LazyTensor& a) { return softmax(a); }, x, mode), expected);
    expect_near(jacobian(by_hand, x, mode), expected);
  }
}

TEST(Jacobian, HasTheShapesOfResultAndArgument) {
  const LazyTensor x = cpu_tensor(random_values(6, 0.5, 1.5, true, 1), {2, 3});
  for (const JacobianMode mode : kModes) {
    EXPECT_EQ(jacobian([](const LazyTensor& a) { return sum(a, 0); }, x, mode).shape(), (Shape{3, 2, 3}));
    EXPECT_EQ(jacobian([](const LazyTensor& a) { return sum(a); }, x, mode).shape(), (Shape{2, 3}));
    EXPECT_EQ(jacobian([](const LazyTensor& a) { return transpose(a); }, x, mode).to_vector<double>(),
              jacobian([](const LazyTensor& a) { return transpose(a) * 1.0; }, x).to_vector<double>());
    const LazyTensor unused = jacobian([](const LazyTensor&) { return vector_of({1, 2}); }, x, mode);
    EXPECT_EQ(unused.shape(), (Shape{2, 2, 3}));
    EXPECT_EQ(unused.to_vector<double>(), Doubles(12, 0));
    const LazyTensor scalar = cpu_tensor({3}, Shape{});
    EXPECT_EQ(jacobian([](const LazyTensor& a) { return a * a; }, scalar, mode).to_vector<double>(),
              Doubles{6});
  }
}

TEST(Jacobian, ErrorsSayWhatIsWrong) {
  const LazyTensor x = vector_of({1, 2});
  const UnaryFunction whole = [](const LazyTensor& a) { return astype(a, DType::i32); };
  EXPECT_MENTIONS(message_of<GradientError>([&] { jacobian(whole, x); }), "int32");
  EXPECT_MENTIONS(message_of<GradientError>([&] { jacobian(whole, astype(x, DType::i64)); }), "int64");
  const LazyTensor deep = reshape(x, Shape{1, 1, 1, 1, 1, 1, 2});
  EXPECT_MENTIONS(message_of<ShapeError>([&] { jacobian([](const LazyTensor& a) { return a * a; }, deep); }),
                  "more than 12 dimensions");
  EXPECT_THROW(hessian([](const LazyTensor& a) { return a * a; }, x), GradientError);
}

TEST(Jacobian, OfEveryExample) {
  const LazyTensor x = cpu_tensor(random_values(6, 0.5, 1.5, true, 1), {2, 3});
  const UnaryFunction function = [](const LazyTensor& a) { return a * sum(a * a); };
  const Doubles values = x.to_vector<double>();
  Doubles expected;  // |x|^2 I + 2 x x^T
  for (std::size_t e = 0; e < 2; ++e) {
    double squares = 0;
    for (std::size_t i = 0; i < 3; ++i) squares += values[3 * e + i] * values[3 * e + i];
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t k = 0; k < 3; ++k) {
        expected.push_back((i == k ? squares : 0) + 2 * values[3 * e + i] * values[3 * e + k]);
      }
    }
  }
  for (const JacobianMode mode : kModes) expect_near(vmap(jacobian(function, mode))(x), expected);
}

TEST(Jacobian, IsDifferentiable) {
  // The determinant of the Jacobian of (x^2 y, x + y^3) is 6 x y^3 - x^2.
  const UnaryFunction map = [](const LazyTensor& a) {
    const LazyTensor x = slice(a, 0, 0, 1), y = slice(a, 0, 1, 2);
    return concatenate({x * x * y, x + y * y * y});
  };
  for (const JacobianMode mode : kModes) {
    const LazyTensor at = vector_of({2, 3});
    const auto [value, grads] = value_and_grad(
        [&](Inputs a) {
          const LazyTensor j = jacobian(map, a[0], mode).reshape(Shape{4});
          const auto entry = [&](int i) { return slice(j, 0, i, i + 1); };
          return sum(entry(0) * entry(3) - entry(1) * entry(2));
        },
        {&at, 1});
    EXPECT_EQ(value.item<double>(), 6 * 2 * 27 - 4);
    EXPECT_EQ(grads[0].to_vector<double>(), (Doubles{6 * 27 - 4, 18 * 2 * 9}));
  }
}

TEST(Hessian, OfAQuadraticFormIsItsMatrix) {
  const LazyTensor a = cpu_tensor(random_values(9, 0.5, 1.5, true, 3), {3, 3});
  const UnaryFunction form = [&](const LazyTensor& x) { return sum(x * matmul(a, x)); };
  const Doubles m = a.to_vector<double>();
  Doubles expected;
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < 3; ++k) expected.push_back(m[3 * i + k] + m[3 * k + i]);
  }
  expect_near(hessian(form, vector_of({1, 2, 3})), expected);
}

/// sum over i of 100 (x_{i+1} - x_i^2)^2 + (1 - x_i)^2
LazyTensor banana(const LazyTensor& x) {
  const LazyTensor head = slice(x, -1, 0, -1), tail = slice(x, -1, 1, std::nullopt);
  return sum(100 * square(tail - head * head) + square(1 - head));
}

TEST(Hessian, OfRosenbrocksFunction) {
  const Doubles x{-1.2, 1, 0.5};
  const Doubles expected{1200 * x[0] * x[0] - 400 * x[1] + 2,
                         -400 * x[0],
                         0,
                         -400 * x[0],
                         200 + 1200 * x[1] * x[1] - 400 * x[2] + 2,
                         -400 * x[1],
                         0,
                         -400 * x[1],
                         200};
  const LazyTensor at = vector_of(x);
  expect_near(hessian(banana, at), expected);
  expect_near(hessian(UnaryFunction(banana))(at), expected);
  expect_near(jacobian(jacobian(banana, JacobianMode::reverse), at, JacobianMode::reverse), expected);
  expect_near(jacobian(jacobian(banana, JacobianMode::forward), at, JacobianMode::reverse), expected);
  expect_near(jacobian(jacobian(banana, JacobianMode::forward), at, JacobianMode::forward), expected);
  const LazyTensor both = stack({at, at});
  Doubles twice = expected;
  twice.insert(twice.end(), expected.begin(), expected.end());
  expect_near(vmap(hessian(UnaryFunction(banana)))(both), twice);
}

TEST(Hessian, OfASmallNetworkMatchesDifferencesOfItsGradient) {
  const LazyTensor w = cpu_tensor(random_values(12, 0.2, 0.8, true, 2), {4, 3});
  const UnaryFunction function = [&](const LazyTensor& x) {
    return sum(log_softmax(tanh(matmul(w, x)) * x.shape()[0]) * 0.5);
  };
  const LazyTensor x = vector_of({0.3, -0.7, 0.2});
  const Doubles h = hessian(function, x).to_vector<double>();
  const auto slope = [&](const Doubles& at) {
    const LazyTensor leaf = vector_of(at);
    return value_and_grad([&](Inputs a) { return function(a[0]); }, {&leaf, 1}).second[0].to_vector<double>();
  };
  for (std::size_t k = 0; k < 3; ++k) {
    Doubles above = x.to_vector<double>(), below = above;
    above[k] += 1e-6;
    below[k] -= 1e-6;
    const Doubles high = slope(above), low = slope(below);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(h[3 * i + k], (high[i] - low[i]) / 2e-6, 1e-7);
  }
}

// ---- functions without tangent rules, and several arguments

UnaryFunction sine_without_tangent() {
  const TensorFunction f = custom_vjp(
      [](Inputs a) { return sin(a[0]); },
      [](Inputs a, const LazyTensor&, const LazyTensor& g) { return std::vector<LazyTensor>{g * cos(a[0])}; },
      "own_sine");
  return [f](const LazyTensor& x) { return f({&x, 1}); };
}

TEST(Jacobian, FallsBackToReverseWithoutATangentRule) {
  const LazyTensor x = vector_of({0.3, 1.2});
  const Doubles c = cos(x).to_vector<double>(), s = sin(x).to_vector<double>();
  const UnaryFunction f = sine_without_tangent();
  expect_near(jacobian(f, x), {c[0], 0, 0, c[1]});
  expect_near(jacobian([&](const LazyTensor& a) { return sum(f(a)); }, x), c);
  EXPECT_MENTIONS(message_of<GradientError>([&] { jacobian(f, x, JacobianMode::forward); }), "own_sine");
  expect_near(vmap(jacobian(f))(stack({x, x})), {c[0], 0, 0, c[1], c[0], 0, 0, c[1]});
  const UnaryFunction total = [&](const LazyTensor& a) { return sum(f(a)); };
  expect_near(hessian(total, x), {-s[0], 0, 0, -s[1]});
  expect_near(jacobian(jacobian(total, JacobianMode::reverse), x, JacobianMode::reverse),
              {-s[0], 0, 0, -s[1]});
  const UnaryFunction wrong = [](const LazyTensor& a) -> LazyTensor { return a * vector_of({1, 2, 3}); };
  EXPECT_THROW(jacobian(wrong, x), ShapeError) << "other errors are not swallowed";
}

TEST(Jacobian, GoesElementByElementPastWhatCannotBeMapped) {
  // Each row of x times a matrix of its own: vmap has no rule for products with one of several.
  const std::vector<double> weights = random_values(3 * 2 * 4, 0.5, 1.5, true, 7);
  const LazyTensor w = LazyTensor::from_vector(std::vector<float>(weights.begin(), weights.end()),
                                               Shape{3, 2, 4}, Device::cpu());
  const QuantizedTensor q = quantized_tensor({.format = QuantizedFormat::f32}, Shape{3, 2, 4}, {w});
  const LazyTensor which = LazyTensor::from_vector<std::int32_t>({2, 0}, {2}, Device::cpu());
  const LazyTensor x = cpu_tensor(random_values(8, 0.5, 1.5, true, 8), {2, 4});
  const UnaryFunction f = [&](const LazyTensor& a) {
    return quantized_matmul_by(astype(a, DType::f32), q, which);
  };
  EXPECT_THROW(vmap(f)(stack({x, x}, 0)), GradientError) << "it can be mapped: take another example";
  Doubles expected(2 * 2 * 2 * 4, 0), second(8 * 8, 0);
  for (std::size_t row = 0; row < 2; ++row) {
    const std::size_t m = row == 0 ? 2 : 0;
    for (std::size_t out = 0; out < 2; ++out) {
      for (std::size_t in = 0; in < 4; ++in)
        expected[((row * 2 + out) * 2 + row) * 4 + in] = static_cast<float>(weights[(m * 2 + out) * 4 + in]);
    }
    for (std::size_t a = 0; a < 4; ++a) {
      for (std::size_t b = 0; b < 4; ++b) {
        for (std::size_t out = 0; out < 2; ++out)
          second[(row * 4 + a) * 8 + row * 4 + b] +=
              2 * weights[(m * 2 + out) * 4 + a] * weights[(m * 2 + out) * 4 + b];
      }
    }
  }
  for (const JacobianMode mode : kModes) {
    const LazyTensor j = jacobian(f, x, mode);
    EXPECT_EQ(j.shape(), (Shape{2, 2, 2, 4}));
    expect_near(j, expected);
  }
  for (const GradMode mode : {GradMode::reverse, GradMode::forward})
    expect_near(jacobian(f, x, {.mode = mode, .strict = true}), expected);
  expect_near(hessian([&](const LazyTensor& a) { return sum(square(f(a))); }, x), second, 1e-5);
}

TEST(Jacobian, HasTheDtypeOfTheArgument) {
  const LazyTensor wide = vector_of({1, 2, 3});
  const LazyTensor narrow = astype(wide, DType::f32);
  for (const JacobianMode mode : kModes) {
    const UnaryFunction narrows = [](const LazyTensor& a) { return astype(a * a, DType::f32); };
    const UnaryFunction widens = [](const LazyTensor& a) { return astype(a * a, DType::f64); };
    const UnaryFunction to_one = [](const LazyTensor& a) { return sum(astype(a, DType::f32)); };
    EXPECT_EQ(jacobian(narrows, wide, mode).dtype(), DType::f64);
    EXPECT_EQ(jacobian(to_one, wide, mode).dtype(), DType::f64);
    EXPECT_EQ(jacobian(widens, narrow, mode).dtype(), DType::f32);
    EXPECT_EQ(jacobian(narrows, wide, mode).to_vector<double>(), (Doubles{2, 0, 0, 0, 4, 0, 0, 0, 6}));
  }
}

TEST(Jacobian, OfSeveralArgumentsAndResults) {
  const LazyTensor x = vector_of({1, 2}), y = vector_of({3, 4, 5});
  const LazyTensor which = LazyTensor::from_vector<std::int32_t>({2, 0}, Shape{2}, Device::cpu());
  const VectorFunction function = [](Inputs a) {
    return std::vector<LazyTensor>{a[0] * take(a[2], a[1]), sum(a[2] * a[2])};
  };
  const LazyTensor arguments[] = {x, which, y};
  for (const JacobianMode mode : kModes) {
    const auto table = jacobian(function, arguments, mode);
    ASSERT_EQ(table.size(), 2U);
    ASSERT_EQ(table[0].size(), 3U);
    EXPECT_EQ(table[0][0].to_vector<double>(), (Doubles{5, 0, 0, 3}));
    EXPECT_EQ(table[0][2].shape(), (Shape{2, 3}));
    EXPECT_EQ(table[0][2].to_vector<double>(), (Doubles{0, 0, 1, 2, 0, 0}));
    EXPECT_EQ(table[1][0].to_vector<double>(), (Doubles{0, 0}));
    EXPECT_EQ(table[1][2].to_vector<double>(), (Doubles{6, 8, 10}));
    EXPECT_FALSE(table[0][1].defined());
    EXPECT_FALSE(table[1][1].defined());
  }
  const VectorFunction half_whole = [](Inputs a) { return std::vector<LazyTensor>{a[0], a[1]}; };
  EXPECT_MENTIONS(message_of<GradientError>([&] { jacobian(half_whole, arguments); }), "result 1");
}

TEST(Hessian, OfSeveralArguments) {
  const LazyTensor x = vector_of({1, 2}), y = vector_of({3, 5});
  const LazyTensor which = LazyTensor::from_vector<std::int32_t>({1, 0}, Shape{2}, Device::cpu());
  const LazyTensor arguments[] = {x, which, y};
  const auto blocks = hessian([](Inputs a) { return sum(a[0] * a[0] * take(a[2], a[1])); }, arguments);
  EXPECT_EQ(blocks[0][0].to_vector<double>(), (Doubles{10, 0, 0, 6}));
  EXPECT_EQ(blocks[0][2].to_vector<double>(), (Doubles{0, 2, 4, 0}));
  EXPECT_EQ(blocks[2][0].to_vector<double>(), (Doubles{0, 4, 2, 0}));
  EXPECT_EQ(blocks[2][2].to_vector<double>(), (Doubles(4, 0)));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(blocks[1][static_cast<std::size_t>(i)].defined());
    EXPECT_FALSE(blocks[static_cast<std::size_t>(i)][1].defined());
  }
}

}  // namespace
}  // namespace caldera::testing
