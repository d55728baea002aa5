// What vmap promises beyond the batching of single operations: axes, errors, index_tensor, and that it nests.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "engine/caldera.h"
#include "engine/runtime/evaluate.h"
#include "ops/core/node_builder.h"
#include "tests/support/messages.h"
#include "tests/support/transforms/gradcheck.h"

namespace caldera::testing {
namespace {

using Inputs = std::span<const LazyTensor>;
using Doubles = std::vector<double>;
using Tensors = std::vector<LazyTensor>;

LazyTensor counted_examples(const Shape& shape, double first = 1) {
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  std::iota(values.begin(), values.end(), first);
  return cpu_tensor(values, shape);
}
LazyTensor index_tensor(const std::vector<std::int32_t>& values, const Shape& shape) {
  return LazyTensor::from_vector(values, shape, Device::cpu());
}

TEST(Vmap, MapsTheAxesThatItIsTold) {
  const LazyTensor x = counted_examples({2, 3});  // examples in rows, or in columns
  const LazyTensor w = vector_of({1, 10, 100});
  const TensorFunction dot = [](Inputs a) { return sum(a[0] * a[1]); };
  EXPECT_EQ(vmap(dot, {0, kUnmapped})(Tensors{x, w}).to_vector<double>(), (Doubles{321, 654}));
  EXPECT_EQ(vmap(dot, {1, kUnmapped})(Tensors{x, vector_of({1, 10})}).to_vector<double>(),
            (Doubles{41, 52, 63}));
  EXPECT_EQ(vmap(dot, {-1, -1})(Tensors{x, x}).to_vector<double>(), (Doubles{17, 29, 45}));
  const UnaryFunction outer = [&](const LazyTensor& a) { return expand_dims(a, 1) * w; };
  EXPECT_EQ(vmap(outer)(x).shape(), (Shape{2, 3, 3}));
  EXPECT_EQ(vmap(outer, 0, 1)(x).shape(), (Shape{3, 2, 3}));
  EXPECT_EQ(vmap(outer, 1, -1)(x).shape(), (Shape{2, 3, 3}));
}

TEST(Vmap, OfSeveralResultsAndOfOneThatDependsOnNothing) {
  const LazyTensor x = counted_examples({2, 3});
  const LazyTensor c = vector_of({7, 8});
  const VectorFunction function = [&](Inputs a) { return Tensors{a[0] * 2.0, c, c, a[0]}; };
  const Tensors out = vmap(function, 0, {0, 0, kUnmapped, 1})({&x, 1});
  EXPECT_EQ(out[0].to_vector<double>(), (Doubles{2, 4, 6, 8, 10, 12}));
  EXPECT_EQ(out[1].to_vector<double>(), (Doubles{7, 8, 7, 8}));
  EXPECT_EQ(out[2].shape(), c.shape());
  EXPECT_EQ(out[3].to_vector<double>(), (Doubles{1, 4, 2, 5, 3, 6}));
}

TEST(Vmap, OfNoExamples) {
  const LazyTensor none = LazyTensor::zeros(Shape{0, 3}, DType::f64, Device::cpu());
  EXPECT_EQ(vmap(UnaryFunction([](const LazyTensor& a) { return a * a; }))(none).shape(), (Shape{0, 3}));
}

TEST(Vmap, ErrorsSayWhatDoesNotFit) {
  const LazyTensor x = counted_examples({2, 3});
  const TensorFunction add_all = [](Inputs a) { return a[0] + a[1]; };
  std::string text = message_of<ShapeError>([&] { vmap(add_all, {0, 1})(Tensors{x, x}); });
  EXPECT_MENTIONS(text, "vmap");
  EXPECT_MENTIONS(text, "argument 1 of shape (2, 3) has 3");
  EXPECT_MENTIONS(message_of<ShapeError>([&] { vmap(add_all, {0})(Tensors{x, x}); }), "2 arguments");
  EXPECT_MENTIONS(message_of<ShapeError>([&] {
                    vmap(add_all, kUnmapped)(Tensors{x, x});
                  }),
                  "no argument is mapped");
  EXPECT_MENTIONS(message_of<ShapeError>([&] {
                    vmap(add_all, {0, 2})(Tensors{x, x});
                  }),
                  "vmap: argument 1 (in_axes): axis 2");
  EXPECT_MENTIONS(message_of<ShapeError>([&] {
                    vmap(add_all, 0, 5)(Tensors{x, x});
                  }),
                  "vmap: result 0 (out_axes): axis 5");
  EXPECT_MENTIONS(message_of<ShapeError>([&] { vmap(add_all, 0, kUnmapped)(Tensors{x, x}); }), "out axis");
}

TEST(Vmap, RefusesMoreAxesThanATensorHas) {
  const LazyTensor x = counted_examples({2, 3});
  const UnaryFunction widest = [](const LazyTensor& a) {
    return broadcast_to(reshape(a, Shape{3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}),
                        Shape{3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2});
  };
  const std::string text = message_of<ShapeError>([&] { vmap(widest)(x); });
  EXPECT_MENTIONS(text, "vmap");
  EXPECT_MENTIONS(text, "more than 12 dimensions");
}

TEST(Vmap, EvaluatingInsideIsAnErrorThatSaysSo) {
  const LazyTensor x = counted_examples({2, 3});
  const auto evaluates = [&](const std::function<void(const LazyTensor&)>& how) {
    const UnaryFunction function = [&](const LazyTensor& a) {
      const LazyTensor y = a * a;
      how(y);
      return y;
    };
    return message_of<ValueError>([&] { vmap(function)(x); });
  };
  EXPECT_MENTIONS(evaluates([](const LazyTensor& y) { y.eval(); }), "under vmap");
  EXPECT_MENTIONS(evaluates([](const LazyTensor& y) { y.to_vector<double>(); }), "under vmap");
  EXPECT_MENTIONS(evaluates([](const LazyTensor& y) { y.eval_async().get(); }), "under vmap");
  EXPECT_MENTIONS(evaluates([](const LazyTensor& y) { sum(y).item<double>(); }), "under vmap");
  EXPECT_MENTIONS(evaluates([](const LazyTensor& y) { plan_for({y}); }), "under vmap");
  // What does not depend on the examples has a value.
  const LazyTensor c = vector_of({1, 2, 3});
  const UnaryFunction fine = [&](const LazyTensor& a) { return a * sum(c * 2.0).item<double>(); };
  EXPECT_EQ(vmap(fine)(x).to_vector<double>(), (Doubles{12, 24, 36, 48, 60, 72}));
}

TEST(Vmap, RandomTensorsAreTheSameForEveryExample) {
  const LazyTensor x = LazyTensor::zeros(Shape{2, 5}, DType::f64, Device::cpu());
  const UnaryFunction noisy = [](const LazyTensor& a) {
    return a + random_normal(a.shape(), 3, DType::f64, a.device());
  };
  const Doubles all = vmap(noisy)(x).to_vector<double>();
  EXPECT_EQ(Doubles(all.begin(), all.begin() + 5), Doubles(all.begin() + 5, all.end()));
  EXPECT_EQ(Doubles(all.begin(), all.begin() + 5),
            random_normal(Shape{5}, 3, DType::f64, Device::cpu()).to_vector<double>());
}

// ---- index_tensor that differ between the examples

/// take and scatter_add one example after the other, in plain loops.
Host taken(const Host& x, const std::vector<std::int32_t>& which, int axis) {
  Shape shape = x.shape;
  shape[axis] = static_cast<std::int64_t>(which.size());
  return Host::from(shape, [&](Index at) {
    const std::int64_t i = which[static_cast<std::size_t>(at[static_cast<std::size_t>(axis)])];
    if (i < 0 || i >= x.shape[axis]) return std::nan("");
    at[static_cast<std::size_t>(axis)] = i;
    return x[at];
  });
}
Host scattered(Host base, const std::vector<std::int32_t>& which, const Host& updates, int axis) {
  for (std::size_t e = 0; e < updates.values.size(); ++e) {
    Index at = unravel(static_cast<std::int64_t>(e), updates.shape);
    const std::int64_t i = which[static_cast<std::size_t>(at[static_cast<std::size_t>(axis)])];
    if (i < 0 || i >= base.shape[axis]) continue;
    at[static_cast<std::size_t>(axis)] = i;
    base[at] += updates.values[e];
  }
  return base;
}
Host example(const Host& all, std::int64_t i) {
  Shape shape = all.shape;
  shape.erase(0);
  const auto count = static_cast<std::ptrdiff_t>(shape.numel());
  const auto first = all.values.begin() + static_cast<std::ptrdiff_t>(i) * count;
  return {shape, Doubles(first, first + count)};
}
void expect_same(const LazyTensor& actual, const std::vector<Host>& expected) {
  Doubles joined;
  for (const Host& one : expected) joined.insert(joined.end(), one.values.begin(), one.values.end());
  const Doubles values = actual.to_vector<double>();
  ASSERT_EQ(values.size(), joined.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    EXPECT_TRUE(std::isnan(joined[i]) ? std::isnan(values[i]) : values[i] == joined[i])
        << "element " << i << ": " << values[i] << ", expected " << joined[i];
  }
}

TEST(Vmap, OfIndicesThatDifferAndLieOutside) {
  const std::vector<std::int32_t> which{0, 2, -1, 2, 7, 1, 1, 3};  // two examples of four
  const LazyTensor i = index_tensor(which, {2, 4});
  const auto mine = [&](std::int64_t e) {
    return std::vector<std::int32_t>(which.begin() + 4 * e, which.begin() + 4 * e + 4);
  };
  for (const int axis : {0, 1, 2}) {
    const Shape one{3, 3, 3};
    const Host x(Shape{2, 3, 3, 3}, random_values(54, 1, 2, true, 3));
    const LazyTensor xs = cpu_tensor(x.values, x.shape);
    const TensorFunction pick = [&](Inputs a) { return take(a[0], a[1], axis); };
    expect_same(vmap(pick)(Tensors{xs, i}),
                {taken(example(x, 0), mine(0), axis), taken(example(x, 1), mine(1), axis)});
    const LazyTensor shared = cpu_tensor(example(x, 1).values, one);
    expect_same(vmap(pick, {kUnmapped, 0})(Tensors{shared, i}),
                {taken(example(x, 1), mine(0), axis), taken(example(x, 1), mine(1), axis)});

    Shape updated{2, 3, 3, 3};
    updated[axis + 1] = 4;
    const Host u(updated, random_values(updated.numel(), 1, 2, true, 4));
    const LazyTensor us = cpu_tensor(u.values, u.shape);
    const TensorFunction add_at = [&](Inputs a) { return scatter_add(a[0], a[1], a[2], axis); };
    expect_same(vmap(add_at)(Tensors{xs, i, us}), {scattered(example(x, 0), mine(0), example(u, 0), axis),
                                                   scattered(example(x, 1), mine(1), example(u, 1), axis)});
    expect_same(vmap(add_at, {kUnmapped, 0, 0})(Tensors{shared, i, us}),
                {scattered(example(x, 1), mine(0), example(u, 0), axis),
                 scattered(example(x, 1), mine(1), example(u, 1), axis)});
    expect_same(vmap(add_at, {kUnmapped, 0, kUnmapped})(
                    Tensors{shared, i, cpu_tensor(example(u, 0).values, example(u, 0).shape)}),
                {scattered(example(x, 1), mine(0), example(u, 0), axis),
                 scattered(example(x, 1), mine(1), example(u, 0), axis)});
  }
}

TEST(Vmap, OfIndicesOfAnyRank) {
  const LazyTensor x = counted_examples({2, 4, 3});
  const LazyTensor single = index_tensor({3, 1}, {2});
  const TensorFunction row = [](Inputs a) { return take(a[0], a[1], 0); };
  EXPECT_EQ(vmap(row)(Tensors{x, single}).to_vector<double>(), (Doubles{10, 11, 12, 16, 17, 18}));
  const LazyTensor square = index_tensor({0, 1, 2, 0, 1, 1, 2, 2}, {2, 2, 2});
  const TensorFunction columns = [](Inputs a) { return take(a[0], a[1], 1); };
  const LazyTensor out = vmap(columns)(Tensors{x, square});
  EXPECT_EQ(out.shape(), (Shape{2, 4, 2, 2}));
  const Doubles values = out.to_vector<double>();
  EXPECT_EQ(Doubles(values.begin(), values.begin() + 8), (Doubles{1, 2, 3, 1, 4, 5, 6, 4}));
  EXPECT_EQ(Doubles(values.begin() + 16, values.begin() + 20), (Doubles{14, 14, 15, 15}));
}

// ---- structure

TEST(Vmap, OfAProductIsOneProduct) {
  const LazyTensor w = counted_examples({3, 4});
  const LazyTensor x = counted_examples({5, 3});
  const auto steps = [](const LazyTensor& y) { return plan_for({y})->steps.size(); };
  EXPECT_EQ(steps(vmap(UnaryFunction([&](const LazyTensor& a) { return matmul(a, w); }))(x)), 1U);
  EXPECT_EQ(steps(vmap(UnaryFunction([&](const LazyTensor& a) { return tanh(matmul(transpose(w), a)); }))(x)),
            1U);
  EXPECT_EQ(steps(vmap(UnaryFunction([&](const LazyTensor& a) { return exp(a * a) + sum(w); }))(x)),
            steps(exp(x * x) + sum(w)));
}

TEST(Vmap, OfASoftmaxFusesLikeOneSoftmax) {
  const LazyTensor x = counted_examples({5, 33});
  const LazyTensor mapped = vmap(UnaryFunction([](const LazyTensor& a) { return softmax(a * 0.1); }))(x);
  EXPECT_EQ(plan_for({mapped})->steps.size(), plan_for({softmax(x * 0.1)})->steps.size());
}

// ---- nesting

TEST(Vmap, OfVmap) {
  const LazyTensor x = counted_examples({2, 3});
  const LazyTensor y = counted_examples({4, 3}, 10);
  const TensorFunction dot = [](Inputs a) { return sum(a[0] * a[1]); };
  const TensorFunction table = vmap(vmap(dot, {kUnmapped, 0}), {0, kUnmapped});
  const LazyTensor out = table(Tensors{x, y});
  EXPECT_EQ(out.shape(), (Shape{2, 4}));
  EXPECT_EQ(out.to_vector<double>(), matmul(x, transpose(y)).to_vector<double>());
}

/// sum over k of tanh(w_k . x)
LazyTensor energy(const LazyTensor& x, const LazyTensor& w) { return sum(tanh(matmul(w, x))); }

TEST(Vmap, OfGradientsIsTheGradientOfEachExample) {
  const LazyTensor x = cpu_tensor(random_values(15, 0.1, 0.5, true, 1), {5, 3});
  const LazyTensor w = cpu_tensor(random_values(12, 0.1, 0.5, true, 2), {4, 3});
  const VectorFunction slopes = [](Inputs a) {
    return value_and_grad([](Inputs b) { return energy(b[0], b[1]); }, a).second;
  };
  const Tensors all = vmap(slopes, {0, kUnmapped})(Tensors{x, w});
  EXPECT_EQ(all[1].shape(), (Shape{5, 4, 3}));
  for (int i = 0; i < 5; ++i) {
    const auto row = [&](const LazyTensor& t) { return squeeze(slice(t, 0, i, i + 1), 0); };
    const Tensors alone = slopes(Tensors{row(x), w});
    for (std::size_t k = 0; k < 2; ++k) {
      const Doubles mapped = row(all[k]).to_vector<double>(), single = alone[k].to_vector<double>();
      for (std::size_t e = 0; e < single.size(); ++e) EXPECT_NEAR(mapped[e], single[e], 1e-14);
    }
  }
}

TEST(Vmap, UnderGradientsInBothModes) {
  const LazyTensor w = cpu_tensor(random_values(12, 0.1, 0.5, true, 2), {4, 3});
  const TensorFunction total = [&](Inputs a) {
    return sum(square(vmap(TensorFunction([](Inputs b) { return energy(b[0], b[1]); }),
                           {1, kUnmapped})(Tensors{a[0], a[1]})));
  };
  EXPECT_TRUE(gradients_agree(total, {{Shape{3, 5}}, {Shape{4, 3}}}));
  EXPECT_TRUE(gradients_agree(gradient_function(total), {{Shape{3, 5}}, {Shape{4, 3}}}));
  const LazyTensor x = cpu_tensor(random_values(15, 0.1, 0.5, true, 1), {3, 5});
  const LazyTensor vx = cpu_tensor(random_values(15, 0.1, 0.5, true, 3), {3, 5});
  const Tensors primals{x, w}, tangents{vx, {}};
  const auto [value, along] = jvp(total, primals, tangents);
  const Tensors grads = value_and_grad(total, primals).second;
  EXPECT_NEAR(along.item<double>(), sum(grads[0] * vx).item<double>(), 1e-12);
}

TEST(Vmap, OfTangents) {
  const LazyTensor x = vector_of({1, 2, 3});
  const LazyTensor basis =
      astype(expand_dims(arange(3, DType::i32, Device::cpu()), 1) == arange(3, DType::i32, Device::cpu()),
             DType::f64);
  const UnaryFunction push = [&](const LazyTensor& v) {
    return jvp(TensorFunction([](Inputs a) { return a[0] * a[0] * a[0]; }), {&x, 1}, {&v, 1}).second;
  };
  EXPECT_EQ(vmap(push)(basis).to_vector<double>(), (Doubles{3, 0, 0, 0, 12, 0, 0, 0, 27}));
}

TEST(Vmap, NamesAnOperationThatItCannotMap) {
  static const OpDef kOdd{.name = "frobnicate", .kind = OpClass::other_result};
  const LazyTensor x = counted_examples({2, 3});
  const UnaryFunction function = [](const LazyTensor& a) {
    return ops::make(kOdd, a.shape(), a.dtype(), {a});
  };
  EXPECT_MENTIONS(message_of<GradientError>([&] { vmap(function)(x); }), "frobnicate");
}

TEST(Vmap, OfAnIntegerAndABooleanArgument) {
  const LazyTensor x = index_tensor({1, 2, 3, 4}, {2, 2});
  const UnaryFunction function = [](const LazyTensor& a) { return where(a > 2, a * 10, a); };
  EXPECT_EQ(vmap(function)(x).to_vector<std::int32_t>(), (std::vector<std::int32_t>{1, 2, 30, 40}));
}

}  // namespace
}  // namespace caldera::testing
