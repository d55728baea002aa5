// Functions with a gradient of their own: whose rule is used where, what nests, what is refused, and that
// nothing outlives the graph.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "engine/caldera.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/messages.h"
#include "tests/support/transforms/gradcheck.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;
using Doubles = std::vector<double>;
using Tensors = std::vector<LazyTensor>;

Doubles slope_of(const TensorFunction& function, const LazyTensor& x) {
  return value_and_grad([&](Inputs a) { return sum(function(a)); }, {&x, 1}).second[0].to_vector<double>();
}

/// x^2 whose gradient is said to be 3 x, so that it shows which rule was used.
TensorFunction odd_square() {
  return custom_vjp([](Inputs a) { return a[0] * a[0]; },
                    [](Inputs a, const LazyTensor&, const LazyTensor& g) { return Tensors{g * a[0] * 3.0}; },
                    "odd_square");
}
/// sin with rules in both modes, which take the cosine from elsewhere.
VectorFunction own_sin(bool with_tangent = true) {
  CustomVjp rule{.name = "own_sin", .forward = [](Inputs a) { return Tensors{sin(a[0])}; }};
  rule.backward = [](Inputs a, Inputs, Inputs g) { return Tensors{g[0] * cos(a[0])}; };
  if (with_tangent) rule.tangent = [](Inputs a, Inputs, Inputs t) { return Tensors{t[0] * cos(a[0])}; };
  return custom_vjp(rule);
}
/// exp whose rule is made of its result.
TensorFunction own_exp() {
  return custom_vjp([](Inputs a) { return exp(a[0]); },
                    [](Inputs, const LazyTensor& y, const LazyTensor& g) { return Tensors{g * y}; },
                    "own_exp");
}
TensorFunction first_of(const VectorFunction& function) {
  return [function](Inputs a) { return function(a)[0]; };
}

TEST(CustomVjp, IsDifferentiatedByItsOwnRule) {
  const LazyTensor x = vector_of({1, 2, 5});
  EXPECT_EQ(odd_square()({&x, 1}).to_vector<double>(), (Doubles{1, 4, 25}));
  EXPECT_EQ(slope_of(odd_square(), x), (Doubles{3, 6, 15}));
  EXPECT_EQ(slope_of([](Inputs a) { return odd_square()(Tensors{a[0] * 2.0}) * a[0]; }, x),
            (Doubles{4 + 12, 16 + 48, 100 + 300}));
}

TEST(CustomVjp, OfSeveralArgumentsAndResults) {
  const auto seen = std::make_shared<std::vector<Doubles>>();
  const VectorFunction function = custom_vjp(CustomVjp{
      .forward =
          [](Inputs a) {
            return Tensors{a[0] * a[1], a[0] + a[1], a[1]};
          },
      .backward =
          [seen](Inputs a, Inputs results, Inputs g) {
            EXPECT_EQ(results.size(), 3U);
            EXPECT_EQ(results[1].to_vector<double>(), (Doubles{4, 6}));
            for (const LazyTensor& x : g) seen->push_back(x.to_vector<double>());
            return Tensors{g[0] * a[1] * 10.0 + g[1], {}};
          },
  });
  const Tensors at{vector_of({1, 2}), vector_of({3, 4})};
  const auto [value, grads] = value_and_grad(
      [&](Inputs a) {
        const Tensors y = function(a);
        return sum(y[0] * 2.0) + sum(y[2] * 5.0);
      },
      at);
  EXPECT_EQ(value.item<double>(), 6 + 16 + 35);
  EXPECT_EQ(*seen, (std::vector<Doubles>{{2, 2}, {0, 0}, {5, 5}})) << "zeros for the result that is not used";
  EXPECT_EQ(grads[0].to_vector<double>(), (Doubles{60, 80}));
  EXPECT_EQ(grads[1].to_vector<double>(), (Doubles{0, 0})) << "empty stands for zeros";
}

TEST(CustomVjp, TakesIntegersAndEvaluatesInside) {
  const LazyTensor which = LazyTensor::from_vector<std::int32_t>({2, 0}, Shape{2}, Device::cpu());
  const TensorFunction function = custom_vjp(
      [](Inputs a) {
        EXPECT_EQ(a[1].to_vector<std::int32_t>().size(), 2U);
        return sum(a[0]).item<double>() > 0 ? take(a[0], a[1]) : a[0];
      },
      [](Inputs a, const LazyTensor&, const LazyTensor& g) {
        return Tensors{scatter_add(zeros_like(a[0]), a[1], g * 7.0), {}};
      });
  const LazyTensor x = vector_of({1, 2, 3});
  EXPECT_EQ(slope_of([&](Inputs a) { return function(Tensors{a[0], which}); }, x), (Doubles{7, 0, 7}));
}

TEST(CustomVjp, IsDifferentiableAgain) {
  const LazyTensor x = vector_of({0.3, 1.2});
  for (const TensorFunction& function : {first_of(own_sin()), own_exp()}) {
    EXPECT_TRUE(gradients_agree(function, {{Shape{3}}}));
    EXPECT_TRUE(gradients_agree(gradient_function(function), {{Shape{3}}}));
    EXPECT_TRUE(gradients_agree(gradient_function(gradient_function(function), 6), {{Shape{3}}}));
  }
  const UnaryFunction total = [](const LazyTensor& a) { return sum(own_exp()({&a, 1})); };
  const LazyTensor reverse = jacobian(jacobian(total, JacobianMode::reverse), x, JacobianMode::reverse);
  EXPECT_NEAR(reverse.to_vector<double>()[3], std::exp(1.2), 1e-14);
}

TEST(CustomVjp, RefusesForwardModeWithoutATangentRule) {
  const LazyTensor x = vector_of({1, 2});
  EXPECT_MENTIONS(message_of<GradientError>([&] { jvp(odd_square(), {&x, 1}, {&x, 1}); }), "odd_square");
  EXPECT_MENTIONS(message_of<GradientError>([&] { jvp(own_sin(false), {&x, 1}, {&x, 1}); }), "own_sin");
  // Off the way it is a constant.
  const TensorFunction beside = [&](Inputs a) { return odd_square()({&x, 1}) * a[0]; };
  EXPECT_EQ(jvp(beside, {&x, 1}, {&x, 1}).second.to_vector<double>(), (Doubles{1, 8}));
}

TEST(CustomVjp, IsPushedForwardByItsTangentRule) {
  const LazyTensor x = vector_of({0.3, 1.2}), v = vector_of({2, -1});
  const Doubles slope = jvp(first_of(own_sin()), {&x, 1}, {&v, 1}).second.to_vector<double>();
  EXPECT_NEAR(slope[0], 2 * std::cos(0.3), 1e-15);
  const TensorFunction total = [](Inputs a) { return sum(own_sin()(a)[0]); };
  EXPECT_NEAR(hvp(total, {&x, 1}, {&v, 1})[0].to_vector<double>()[1], std::sin(1.2), 1e-15);
  const UnaryFunction one = [](const LazyTensor& a) { return own_sin()({&a, 1})[0]; };
  const Doubles j = vmap(jacobian(one, JacobianMode::forward))(reshape(x, Shape{2, 1})).to_vector<double>();
  EXPECT_NEAR(j[1], std::cos(1.2), 1e-15);
}

// ---- vmap

TEST(CustomVjp, KeepsItsRuleUnderVmap) {
  const LazyTensor x = cpu_tensor({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(slope_of(vmap(odd_square()), x), (Doubles{3, 6, 9, 12, 15, 18}));
  EXPECT_EQ(slope_of(vmap(odd_square(), 1, 1), x), (Doubles{3, 6, 9, 12, 15, 18}));
  const UnaryFunction slope = [](const LazyTensor& a) {
    return value_and_grad([](Inputs b) { return sum(odd_square()(b)); }, {&a, 1}).second[0];
  };
  EXPECT_EQ(vmap(slope)(x).to_vector<double>(), (Doubles{3, 6, 9, 12, 15, 18}));
  EXPECT_EQ(vmap(vmap(slope))(x.reshape(Shape{2, 3, 1})).to_vector<double>(), (Doubles{3, 6, 9, 12, 15, 18}));
  EXPECT_EQ(slope_of(vmap(vmap(odd_square())), x), (Doubles{3, 6, 9, 12, 15, 18}));
}

TEST(CustomVjp, SumsUnderVmapWhatAllExamplesShare) {
  // a * b with factors 2 and 5 in the gradients; b is shared. One result does not depend on the mapped one.
  const VectorFunction product = custom_vjp(CustomVjp{
      .forward =
          [](Inputs a) {
            return Tensors{a[0] * a[1], a[1] * 1.0};
          },
      .backward =
          [](Inputs a, Inputs, Inputs g) {
            return Tensors{g[0] * a[1] * 2.0, g[0] * a[0] * 5.0 + g[1]};
          },
  });
  const Tensors at{cpu_tensor({1, 2, 3, 4}, {2, 2}), vector_of({10, 20})};
  const auto grads = value_and_grad(
                         [&](Inputs a) {
                           const Tensors y = vmap(product, {0, kUnmapped})(a);
                           EXPECT_EQ(y[1].shape(), (Shape{2, 2}));
                           return sum(y[0]) + sum(y[1]) * 100;
                         },
                         at)
                         .second;
  EXPECT_EQ(grads[0].to_vector<double>(), (Doubles{20, 40, 20, 40}));
  EXPECT_EQ(grads[1].to_vector<double>(), (Doubles{5 * (1 + 3) + 200, 5 * (2 + 4) + 200}));
}

// ---- errors

TEST(CustomVjp, ALostGradientIsAnError) {
  const LazyTensor x = vector_of({1, 2});
  const auto captures = [](const LazyTensor& captured) {
    return custom_vjp([captured](Inputs a) { return a[0] * captured; },
                      [](Inputs a, const LazyTensor&, const LazyTensor& g) { return Tensors{g * a[0]}; },
                      "captures");
  };
  const TensorFunction leaks = [&](Inputs a) { return captures(a[0] * 2.0)(a); };
  EXPECT_MENTIONS(message_of<GradientError>([&] { slope_of(leaks, x); }), "captures");
  EXPECT_MENTIONS(message_of<GradientError>([&] { jvp(leaks, {&x, 1}, {&x, 1}); }), "captures");
  EXPECT_EQ(slope_of([&](Inputs a) { return captures(x)(a); }, x), (Doubles{1, 2})) << "a constant is none";
}

TEST(CustomVjp, ErrorsNameTheRuleThatIsWrong) {
  EXPECT_MENTIONS(message_of<ValueError>([] { custom_vjp(CustomVjp{.name = "half"}); }), "half");
  const LazyTensor x = vector_of({1, 2});
  const auto gives = [](const Tensors& grads) {
    return custom_vjp([](Inputs a) { return a[0] * 2.0; },
                      [grads](Inputs, const LazyTensor&, const LazyTensor&) { return grads; }, "wrong");
  };
  EXPECT_MENTIONS(message_of<ShapeError>([&] { slope_of(gives({}), x); }), "wrong");
  const std::string text = message_of<ShapeError>([&] { slope_of(gives({vector_of({1})}), x); });
  EXPECT_MENTIONS(text, "wrong");
  EXPECT_MENTIONS(text, "argument 0 has shape (1,)");
}

TEST(CustomVjp, ADerivativeIsFloating) {
  const LazyTensor x = vector_of({1, 2});
  const auto gives = [](const LazyTensor& derivative) {
    const auto rule = [=](Inputs, Inputs, Inputs) { return Tensors{{}, derivative}; };
    return custom_vjp(CustomVjp{.name = "whole",
                                .forward =
                                    [](Inputs a) {
                                      return Tensors{a[0] * a[1], a[0] + a[1]};
                                    },
                                .backward = rule,
                                .tangent = rule});
  };
  const Tensors at{x, x};
  for (const DType type : {DType::i32, DType::u8, DType::boolean}) {
    const Tensors y = gives(ones_like(x, type))(at);
    const std::string backward = message_of<DTypeError>([&] { grad(sum(y[0]), at[0]); });
    EXPECT_MENTIONS(backward, "custom_vjp 'whole': the backward rule gave " + std::string(name(type)));
    EXPECT_MENTIONS(backward, "argument 1, which is float64");
    EXPECT_MENTIONS(message_of<DTypeError>([&] { jvp(y, {&x, 1}, {&x, 1}); }), "result 1");
  }
  const Tensors narrow = gives(ones_like(x, DType::f32))(at);
  EXPECT_EQ(grad(sum(narrow[0]), x).dtype(), DType::f64) << "of another width it is converted";
}

TEST(CustomVjp, EvaluatesInsideWhereverItIsDifferentiated) {
  // What the inside evaluates has lost its history, which no gradient would have used.
  const TensorFunction function = custom_vjp(
      [](Inputs a) {
        const LazyTensor h = sin(a[0]).eval();
        return h * 1.0;
      },
      [](Inputs a, const LazyTensor&, const LazyTensor& g) { return Tensors{g * cos(a[0])}; });
  const LazyTensor x = vector_of({0.5, 2});
  EXPECT_EQ(grad(sum(function({&x, 1})), x).to_vector<double>(), cos(x).to_vector<double>());
  const LazyTensor later = (x * 1.0).eval(), lazy = x * 1.0;
  EXPECT_EQ(grad(sum(function({&later, 1})), later).to_vector<double>(), cos(x).to_vector<double>());
  EXPECT_EQ(grad(sum(function({&lazy, 1})), lazy).to_vector<double>(), cos(x).to_vector<double>());
  const LazyTensor evaluated = function({&x, 1}).eval();
  EXPECT_THROW(grad(sum(evaluated * x), x), GradientError) << "a gradient did go through the call";
}

TEST(CustomVjp, ARuleMustNotCaptureAMappedTensor) {
  const auto scaled_by = [](const LazyTensor& s, bool with_tangent) {
    CustomVjp rule{.name = "scaled", .forward = [](Inputs a) { return Tensors{a[0] * 2.0}; }};
    rule.backward = [s](Inputs, Inputs, Inputs g) { return Tensors{g[0] * (s + 0.0)}; };
    if (with_tangent) rule.tangent = [s](Inputs, Inputs, Inputs t) { return Tensors{t[0] * s}; };
    return custom_vjp(rule);
  };
  const TensorFunction one = [&](Inputs a) { return scaled_by(a[1], true)(a.first(1))[0]; };
  const LazyTensor x = vector_of({1, 2, 3}), s = vector_of({4, 5, 6});
  const Tensors both{x, s};
  EXPECT_EQ(vmap(one)(both).to_vector<double>(), (Doubles{2, 4, 6})) << "without a gradient it works";
  const std::string text = message_of<GradientError>([&] { grad(sum(vmap(one)(both)), x); });
  EXPECT_MENTIONS(text, "custom_vjp 'scaled': the backward rule captures");
  EXPECT_MENTIONS(text, "pass it as an argument");
  const LazyTensor y = vmap(one)(both);
  EXPECT_MENTIONS(message_of<GradientError>([&] {
                    jvp({&y, 1}, {&x, 1}, {&x, 1});
                  }),
                  "tangent rule captures");
  // Of the outer of two maps.
  const TensorFunction nested = [&](Inputs a) {
    const LazyTensor& outer = a[1];
    const UnaryFunction inner = [&](const LazyTensor& b) { return scaled_by(outer, false)({&b, 1})[0]; };
    return sum(vmap(inner)(a[0]));
  };
  const Tensors square{cpu_tensor({1, 2, 3, 4, 5, 6}, {3, 2}), s};
  EXPECT_MENTIONS(message_of<GradientError>([&] { grad(sum(vmap(nested)(square)), square[0]); }), "captures");
  // What is the same for every example may be captured; and so may what is mapped, inside of the map.
  const UnaryFunction constant = [&](const LazyTensor& a) { return sum(scaled_by(s, false)({&a, 1})[0]); };
  const LazyTensor rows = cpu_tensor({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(slope_of([&](Inputs a) { return vmap(constant)(a[0]); }, rows), (Doubles{4, 5, 6, 4, 5, 6}));
  const TensorFunction inside = [&](Inputs a) {
    const auto f = scaled_by(a[1], false);
    return value_and_grad([&](Inputs b) { return sum(f(b)[0]); }, a.first(1)).second[0];
  };
  EXPECT_EQ(vmap(inside)(both).to_vector<double>(), (Doubles{4, 5, 6}));
  const TensorFunction inside_outer = [&](Inputs a) {
    const LazyTensor& outer = a[1];
    const UnaryFunction inner = [&](const LazyTensor& b) { return scaled_by(outer, false)({&b, 1})[0]; };
    return value_and_grad([&](Inputs b) { return sum(vmap(inner)(b[0])); }, a.first(1)).second[0];
  };
  EXPECT_EQ(vmap(inside_outer)(square).to_vector<double>(), (Doubles{4, 4, 5, 5, 6, 6}));
}

// ---- lifetime

TEST(CustomVjp, TheRuleGoesWithTheGraph) {
  auto token = std::make_shared<int>(1);
  const std::weak_ptr<int> alive = token;
  LazyTensor y, g;
  {
    const auto function =
        custom_vjp([](Inputs a) { return a[0] * 2.0; },
                   [token](Inputs, const LazyTensor&, const LazyTensor& c) { return Tensors{c}; });
    const LazyTensor x = vector_of({1, 2});
    y = vmap(function)({&x, 1});
    g = grad(sum(y), x);
  }
  token.reset();
  EXPECT_FALSE(alive.expired()) << "what is lazy can still be differentiated";
  eval({y, g});
  EXPECT_TRUE(alive.expired());
}

TEST(CustomVjp, ManyCallsShareOnePlan) {
  clear_plan_cache();
  const auto misses = plan_cache_stats().misses;
  for (int step = 0; step < 4; ++step) {
    const LazyTensor x = vector_of({1, 2});
    slope_of(odd_square(), x);  // a new rule each time
  }
  EXPECT_EQ(plan_cache_stats().misses - misses, 1U);
}

TEST(CustomVjp, CostsNothingWhereItIsNotDifferentiated) {
  const LazyTensor x = vector_of({1, 2});
  const LazyTensor y = exp(odd_square()({&x, 1})) + 1.0;
  EXPECT_EQ(plan_for({y})->steps.size(), 1U);
}

}  // namespace
}  // namespace caldera::testing
