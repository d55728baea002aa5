// vmap of loops and branches against the function called for one example after the other: values, gradients
// of examples, gradients of sums over examples, tangents; and jacobians of loops against the loop written
// out.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/messages.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

using Given = std::span<const LazyTensor>;
using List = std::vector<LazyTensor>;
using MappedAxes = std::vector<std::optional<int>>;

constexpr std::int64_t kExamples = 4;

struct MappedCase {
  std::string name;
  VectorFunction function;  // of x (3), m (2, 3), n (one number), to floating results
};

LazyTensor number_like(const LazyTensor& x, double value) { return zeros_like(x) + value; }

/// Goes through m with a carry that starts as x, one that counts, and one that all examples share.
List sweep(Given a, ScanOptions options) {
  const ScanTurn run = scan(
      [&](auto carry, auto slices) {
        const LazyTensor h = sin(carry[0] * slices[0] + a[2]);
        return ScanTurn{{h, carry[1] + 1, carry[2] * 0.5}, {h * carry[2], carry[1]}};
      },
      List{a[0], zeros({}, a[0].dtype(), a[0].device()), ones({}, a[0].dtype(), a[0].device())}, List{a[1]},
      options);
  return {run.carry[0], run.carry[1] + run.carry[2], run.stacked[0], run.stacked[1]};
}

/// Runs until its sum is large, a number of turns that depends on x; none for some.
List growth(Given a, std::int64_t snapshots) {
  const List end = while_loop([&](Given c) { return sum(c[0]) < 4 + a[2]; },
                              [&](Given c) {
                                return List{c[0] * 1.3 + sin(a[1])[0] * 0.2 + 0.1, c[1] + c[0]};
                              },
                              List{a[0] * 2, zeros_like(a[0])}, {.snapshots = snapshots});
  return {end[0], end[1]};
}

std::vector<MappedCase> mapped_cases() {
  std::vector<MappedCase> cases;
  const auto add = [&](std::string name, std::function<List(Given)> function) {
    cases.push_back({std::move(name), std::move(function)});
  };
  add("scan", [](Given a) { return sweep(a, {}); });
  add("scan in reverse, with snapshots", [](Given a) { return sweep(a, {.reverse = true, .snapshots = 1}); });
  add("for_loop", [](Given a) {
    return List{for_loop(3,
                         [&](const LazyTensor& i, const LazyTensor& x) {
                           return sin(x) * a[2] + astype(i, x.dtype()) * sum(a[1], 0);
                         },
                         a[0], {.snapshots = 2})};
  });
  add("while_loop whose examples end apart", [](Given a) { return growth(a, 32); });
  add("while_loop with one snapshot", [](Given a) { return growth(a, 1); });
  add("while_loop whose examples end together", [](Given a) {
    return List{while_loop([](Given c) { return c[0] < 3; },
                           [&](Given c) {
                             return List{c[0] + 1, tanh(c[1] * a[0]) + a[2]};
                           },
                           List{zeros({}, a[0].dtype(), a[0].device()), a[1]})[1]};
  });
  add("cond", [](Given a) {
    return cond(
        a[2] > 0.2,
        [&](Given x) {
          return List{x[0] * a[1], sum(x[0])};
        },
        [&](Given x) {
          return List{sin(a[1]) + x[0], number_like(sum(x[0]), 3)};
        },
        List{a[0]});
  });
  add("switch_case", [](Given a) {
    const std::vector<VectorFunction> branches{[](Given x) { return List{x[0] * 2}; },
                                               [](Given x) { return List{x[0] * x[1]}; },
                                               [](Given x) { return List{exp(x[0])}; }};
    return switch_case(astype(floor(a[2] * 5) - 1, DType::i32), branches, List{a[0], sum(a[1], 0)});
  });
  add("a loop in a branch in a loop", [](Given a) {
    return List{for_loop(
        3,
        [&](const LazyTensor& i, const LazyTensor& x) {
          return cond(
              sum(x) > a[2] * 3,
              [&](const LazyTensor& y) {
                return growth(List{y * 0.3, a[1], a[2]}, 2)[0] * 0.1;
              },
              [&](const LazyTensor& y) { return y + astype(i, y.dtype()) + a[0]; }, x);
        },
        a[0])};
  });
  return cases;
}

class MappedLoops : public OpTest {
 protected:
  DType dtype() const { return supports(DType::f64) ? DType::f64 : DType::f32; }
  double tolerance() const { return dtype() == DType::f64 ? 1e-11 : 2e-4; }

  LazyTensor values_of(const Shape& shape, std::uint64_t seed) const {
    return upload(Host(shape, random_values(shape.numel(), 0.1, 0.9, false, seed)), dtype(), device());
  }

  void expect_equal(const LazyTensor& got, const LazyTensor& want, const std::string& what) const {
    ASSERT_EQ(got.shape(), want.shape()) << what;
    EXPECT_TRUE(agrees(got, Host{want.shape(), download(want)}, {tolerance(), tolerance()})) << what;
  }

  /// Which arguments are mapped; of a device that compiles kernels, all of them.
  std::vector<MappedAxes> mappings() const {
    std::vector<MappedAxes> all{{0, 0, 0}};
    if (!is_vulkan())
      all.insert(all.end(),
                 {{0, kUnmapped, kUnmapped}, {kUnmapped, 0, kUnmapped}, {kUnmapped, kUnmapped, 0}});
    return all;
  }

  /// Arguments of which those have a first axis of examples that `axes` says.
  List arguments(const MappedAxes& axes) const {
    List all;
    const Shape shapes[] = {{3}, {2, 3}, {}};
    for (std::size_t i = 0; i < axes.size(); ++i) {
      Shape shape = shapes[i];
      if (axes[i]) shape.insert(0, kExamples);
      all.push_back(values_of(shape, 20 + i));
    }
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(Devices, MappedLoops, ::testing::ValuesIn(op_settings()), op_setting_name);

/// What the function gives for each example, one after the other.
List one_by_one(const VectorFunction& function, Given arguments, const MappedAxes& axes) {
  std::vector<List> each;
  for (std::int64_t e = 0; e < kExamples; ++e) {
    List one;
    for (std::size_t i = 0; i < arguments.size(); ++i)
      one.push_back(axes[i] ? unstack(arguments[i])[static_cast<std::size_t>(e)] : arguments[i]);
    List results = function(one);
    each.resize(results.size());
    for (std::size_t k = 0; k < results.size(); ++k) each[k].push_back(results[k]);
  }
  List all;
  for (const List& of : each) all.push_back(stack(of, 0));
  return all;
}

/// A number of all results, none with the same weight.
LazyTensor weighted(Given results) {
  LazyTensor total;
  for (const LazyTensor& x : results) {
    const LazyTensor weights = iota(Shape{x.numel()}, 0, x.dtype(), x.device()) * 0.3 + 0.4;
    const LazyTensor part = sum(reshape(x, Shape{x.numel()}) * weights);
    total = total.defined() ? total + part : part;
  }
  return total;
}

VectorFunction gradients_of(const VectorFunction& function) {
  return [function](Given at) {
    return value_and_grad([&](Given a) { return weighted(function(a)); }, at).second;
  };
}

VectorFunction tangents_of(const VectorFunction& function) {
  return [function](Given at) {
    List along;
    for (const LazyTensor& x : at) along.push_back(cos(x * 2));
    return jvp(function, at, along).second;
  };
}

TEST_P(MappedLoops, AreTheFunctionExampleByExample) {
  for (const MappedCase& c : mapped_cases()) {
    int mapping = 0;
    for (const MappedAxes& axes : mappings()) {
      const std::string what = c.name + ", mapping " + std::to_string(mapping++);
      const List x = arguments(axes);
      const auto compare = [&](const VectorFunction& f, const std::string& of) {
        const List got = vmap(f, axes)(x), want = one_by_one(f, x, axes);
        eval(got);
        for (std::size_t k = 0; k < want.size(); ++k)
          expect_equal(got[k], want[k], what + ": " + of + " " + std::to_string(k));
      };
      compare(c.function, "value");
      compare(gradients_of(c.function), "gradient of examples");
      compare(tangents_of(c.function), "tangent of examples");
    }
  }
}

TEST_P(MappedLoops, HaveGradients) {
  for (const MappedCase& c : mapped_cases()) {
    int mapping = 0;
    for (const MappedAxes& axes : mappings()) {
      const std::string what = c.name + ", mapping " + std::to_string(mapping++);
      const List x = arguments(axes);
      const VectorFunction got = vmap(c.function, axes);
      const VectorFunction want = [&](Given a) { return one_by_one(c.function, a, axes); };
      const List of_all = gradients_of(got)(x), one_each = gradients_of(want)(x);
      const List along = tangents_of(got)(x), along_each = tangents_of(want)(x);
      for (std::size_t i = 0; i < x.size(); ++i)
        expect_equal(of_all[i], one_each[i], what + ": gradient " + std::to_string(i));
      for (std::size_t k = 0; k < along.size(); ++k)
        expect_equal(along[k], along_each[k], what + ": tangent " + std::to_string(k));
    }
  }
}

TEST_P(MappedLoops, MapTwice) {
  // Pairs of examples: the rows are x, the columns m and n.
  const MappedAxes rows{0, kUnmapped, kUnmapped}, columns{kUnmapped, 0, 0};
  const List x = arguments({0, 0, 0});
  for (const MappedCase& c : mapped_cases()) {
    for (const VectorFunction& f : {c.function, gradients_of(c.function)}) {
      const List got = vmap(vmap(f, columns), rows)(x);
      const List want = one_by_one([&](Given a) { return one_by_one(f, a, columns); }, x, rows);
      for (std::size_t k = 0; k < want.size(); ++k) expect_equal(got[k], want[k], c.name);
    }
  }
}

TEST_P(MappedLoops, HaveJacobians) {
  const List at = arguments({kUnmapped, kUnmapped, kUnmapped});
  for (const MappedCase& c : mapped_cases()) {
    const UnaryFunction f = [&](const LazyTensor& x) { return c.function(List{x, at[1], at[2]})[0]; };
    const LazyTensor forward = jacobian(f, at[0], JacobianMode::forward);
    // Column by column.
    List columns;
    for (std::int64_t i = 0; i < 3; ++i) {
      const LazyTensor along = astype(iota(Shape{3}, 0, DType::i32, device()) == i, dtype());
      columns.push_back(
          jvp(VectorFunction([&](Given a) { return List{f(a[0])}; }), List{at[0]}, List{along}).second[0]);
    }
    expect_equal(forward, stack(columns, -1), c.name + ", forward");
    expect_equal(jacobian(f, at[0], JacobianMode::reverse), stack(columns, -1), c.name + ", reverse");
  }
}

TEST_P(MappedLoops, HaveHessians) {
  const List at = arguments({kUnmapped, kUnmapped, kUnmapped});
  for (const MappedCase& c : mapped_cases()) {
    const UnaryFunction f = [&](const LazyTensor& x) { return weighted(c.function(List{x, at[1], at[2]})); };
    List columns;
    for (std::int64_t i = 0; i < 3; ++i) {
      const LazyTensor along = astype(iota(Shape{3}, 0, DType::i32, device()) == i, dtype());
      const VectorFunction gradient = [&](Given a) {
        return value_and_grad([&](Given b) { return f(b[0]); }, a).second;
      };
      columns.push_back(jvp(gradient, List{at[0]}, List{along}).second[0]);
    }
    expect_equal(hessian(f, at[0]), stack(columns, -1), c.name);
  }
}

TEST_P(MappedLoops, WhatExamplesShareStaysShared) {
  const List x = arguments({0, kUnmapped, kUnmapped});
  // The counting carry differs between no examples: it may leave without an axis.
  const List out =
      vmap(VectorFunction([&](Given a) {
             const ScanTurn run = scan(
                 [&](auto carry, auto) {
                   return ScanTurn{{carry[0] * a[0], carry[1] + 1}, {carry[1]}};
                 },
                 List{ones({3}, dtype(), device()), zeros({}, dtype(), device())}, {}, {.turns = 5});
             return List{run.carry[0], run.carry[1], run.stacked[0]};
           }),
           0, {0, kUnmapped, kUnmapped})(std::span(x).first(1));
  EXPECT_EQ(out[0].shape(), (Shape{kExamples, 3}));
  EXPECT_EQ(out[1].item<double>(), 5);
  EXPECT_EQ(out[2].shape(), Shape{5});
}

TEST_P(MappedLoops, OfNoExamples) {
  for (const MappedCase& c : mapped_cases()) {
    const List x{zeros({0, 3}, dtype(), device()), zeros({0, 2, 3}, dtype(), device()),
                 zeros({0}, dtype(), device())};
    for (const LazyTensor& y : vmap(gradients_of(c.function))(x)) {
      EXPECT_EQ(y.shape(0), 0) << c.name;
      eval({y});
    }
  }
}

TEST_P(MappedLoops, StayOneNodeHoweverManyTurns) {
  std::vector<std::size_t> steps;
  for (const std::int64_t turns : {10, 1000}) {
    const LazyTensor x = values_of({kExamples, turns, 3}, 4);
    const LazyTensor last = vmap(UnaryFunction([&](const LazyTensor& rows) {
      return scan([](auto carry, auto slices) { return ScanTurn{{carry[0] * 0.5 + slices[0]}}; },
                  List{zeros({3}, dtype(), device())}, List{rows})
          .carry[0];
    }))(x);
    steps.push_back(plan_for({last})->steps.size());
  }
  EXPECT_EQ(steps[0], steps[1]);
}

}  // namespace
}  // namespace caldera::testing
