// scan over lists of tensors, against the loop written out.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/messages.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

class ScanListsTest : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, ScanListsTest, ::testing::ValuesIn(op_settings()), op_setting_name);

using ListOfTensors = std::vector<LazyTensor>;

LazyTensor listed_tensor(const Shape& shape, std::uint64_t seed) {
  return upload(Host(shape, random_values(shape.numel(), 0.2, 0.9, true, seed)), DType::f32,
                default_device());
}

ListOfTensors listed_tensors(std::int64_t count, const Shape& shape, std::uint64_t seed) {
  ListOfTensors list;
  for (std::int64_t i = 0; i < count; ++i)
    list.push_back(listed_tensor(shape, seed + static_cast<std::uint64_t>(i)));
  return list;
}

void expect_as_written(const LazyTensor& a, const LazyTensor& b, double tolerance, const std::string& what) {
  EXPECT_TRUE(agrees(a, Host{b.shape(), download(b)}, {tolerance, tolerance})) << what;
}

/// A network of layers: h = tanh(h w + b + c x), with weights that are listed, x that is stacked and c that
/// is captured. A turn stacks its sum and lists its state.
ScanTurn listed_layer(const LazyTensor& c, const LazyTensor& h, const LazyTensor& x, const LazyTensor& w,
                      const LazyTensor& b) {
  const LazyTensor next = tanh(matmul(h, w) + b + c * x);
  return {{next}, {sum(next * next)}, {next * 3, sin(h)}};
}

struct ListedNetwork {
  LazyTensor h, x, c;
  ListOfTensors w, b;

  explicit ListedNetwork(std::int64_t layers)
      : h(listed_tensor({2, 3}, 1)),
        x(listed_tensor({layers, 2, 3}, 2)),
        c(listed_tensor({3}, 3)),
        w(listed_tensors(layers, {3, 3}, 100)),
        b(listed_tensors(layers, {3}, 200)) {}

  ListOfTensors arguments() const {
    ListOfTensors all{h, x, c};
    all.insert(all.end(), w.begin(), w.end());
    all.insert(all.end(), b.begin(), b.end());
    return all;
  }
  /// The network of other tensors in the order of arguments().
  ListedNetwork with(std::span<const LazyTensor> all) const {
    ListedNetwork other = *this;
    other.h = all[0], other.x = all[1], other.c = all[2];
    for (std::size_t i = 0; i < w.size(); ++i) {
      other.w[i] = all[3 + i];
      other.b[i] = all[3 + w.size() + i];
    }
    return other;
  }

  ScanTurn scanned(ScanOptions options = {}) const {
    options.lists = {w, b};
    return scan(
        [&](std::span<const LazyTensor> carry, std::span<const LazyTensor> slices) {
          return listed_layer(c, carry[0], slices[0], slices[1], slices[2]);
        },
        std::vector{h}, std::vector{x}, options);
  }
  ScanTurn written_out(bool reverse = false) const {
    const std::size_t turns = w.size();
    LazyTensor state = h;
    ListOfTensors sums(turns), listed(2 * turns);
    for (std::size_t t = 0; t < turns; ++t) {
      const std::size_t at = reverse ? turns - 1 - t : t;
      const auto row = static_cast<std::int64_t>(at);
      const ScanTurn turn =
          listed_layer(c, state, reshape(slice(x, 0, row, row + 1), Shape{2, 3}), w[at], b[at]);
      state = turn.carry[0];
      sums[at] = turn.stacked[0];
      listed[at] = turn.listed[0];
      listed[turns + at] = turn.listed[1];
    }
    return {{state}, {stack(sums, 0)}, listed};
  }
};

/// A loss of all that a scan gives, in which the turns weigh differently.
LazyTensor loss_of_network(const ScanTurn& turn) {
  LazyTensor loss = sum(cos(turn.carry[0])) + sum(sin(turn.stacked[0]));
  for (std::size_t i = 0; i < turn.listed.size(); ++i) {
    if (i % 3 != 1) loss = loss + sum(turn.listed[i] * turn.listed[i]) * (0.1 * static_cast<double>(i + 1));
  }
  return loss;
}

TEST_P(ScanListsTest, IsTheLoopWrittenOut) {
  for (const bool reverse : {false, true}) {
    for (const std::int64_t layers : {1, 2, 5, 8}) {
      if (is_vulkan() && layers < 5) continue;  // compiling its kernels takes seconds
      const ListedNetwork network(layers);
      const ScanTurn got = network.scanned({.reverse = reverse}), want = network.written_out(reverse);
      const std::string what = std::to_string(layers) + " layers" + (reverse ? " reversed" : "");
      expect_as_written(got.carry[0], want.carry[0], 1e-5, what);
      expect_as_written(got.stacked[0], want.stacked[0], 1e-5, what);
      ASSERT_EQ(got.listed.size(), want.listed.size());
      for (std::size_t i = 0; i < want.listed.size(); ++i)
        expect_as_written(got.listed[i], want.listed[i], 1e-5, what + ", listed " + std::to_string(i));
    }
  }
}

TEST_P(ScanListsTest, GradientsAreThoseOfTheLoopWrittenOut) {
  for (const bool reverse : {false, true}) {
    for (const std::int64_t snapshots : {0, 1, 2, 9}) {
      if (is_vulkan() && snapshots % 2 != 0) continue;
      const ListedNetwork network(6);
      const ListOfTensors arguments = network.arguments();
      const auto [got, grads] = value_and_grad(
          [&](std::span<const LazyTensor> a) {
            return loss_of_network(network.with(a).scanned({.reverse = reverse, .snapshots = snapshots}));
          },
          arguments);
      const auto [want, expected] = value_and_grad(
          [&](std::span<const LazyTensor> a) {
            return loss_of_network(network.with(a).written_out(reverse));
          },
          arguments);
      const std::string what = std::to_string(snapshots) + " snapshots" + (reverse ? " reversed" : "");
      expect_as_written(got, want, 1e-5, what);
      for (std::size_t i = 0; i < arguments.size(); ++i)
        expect_as_written(grads[i], expected[i], 3e-5, what + ", argument " + std::to_string(i));
    }
  }
}

TEST_P(ScanListsTest, GradientsOfSomeTensorsOfAList) {
  const ListedNetwork network(4);
  const auto loss = [&](bool scanned, std::span<const LazyTensor> a) {
    ListedNetwork other = network;
    other.w[2] = a[0];
    return loss_of_network(scanned ? other.scanned() : other.written_out());
  };
  const ListOfTensors arguments{network.w[2]};
  const auto got = value_and_grad([&](auto a) { return loss(true, a); }, arguments).second;
  const auto want = value_and_grad([&](auto a) { return loss(false, a); }, arguments).second;
  expect_as_written(got[0], want[0], 3e-5, "one tensor");
}

TEST_P(ScanListsTest, ATensorMayBeInAListTwice) {
  const LazyTensor w = listed_tensor({3, 3}, 5);
  const auto scanned = [](const LazyTensor& x) {
    const auto body = [](std::span<const LazyTensor> h, std::span<const LazyTensor> slices) {
      return ScanTurn{{tanh(matmul(h[0], slices[0]))}};
    };
    return sum(scan(body, std::vector{ones({2, 3})}, {}, {.lists = {{x, x, x}}}).carry[0]);
  };
  const auto written_out = [](const LazyTensor& x) {
    LazyTensor h = ones({2, 3});
    for (int i = 0; i < 3; ++i) h = tanh(matmul(h, x));
    return sum(h);
  };
  expect_as_written(grad(scanned(w), w), grad(written_out(w), w), 1e-5, "thrice");
}

TEST_P(ScanListsTest, ForwardModeAndDerivativesOfDerivatives) {
  if (is_vulkan() && !GetParam().fusion)
    GTEST_SKIP() << "a minute on a software device: its graphs run as cpu_unfused and vulkan_fused";
  const ListedNetwork network(3);
  const ListOfTensors arguments = network.arguments();
  ListOfTensors direction;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    direction.push_back(listed_tensor(arguments[i].shape(), 300 + i));
  for (const std::int64_t snapshots : {0, 2}) {
    const auto loss = [&](bool scanned) {
      return [&, scanned](std::span<const LazyTensor> a) {
        const ListedNetwork other = network.with(a);
        return loss_of_network(scanned ? other.scanned({.snapshots = snapshots}) : other.written_out());
      };
    };
    const auto along = [&](const TensorFunction& f) {
      return jvp([&](std::span<const LazyTensor> a) { return std::vector{f(a)}; }, arguments, direction)
          .second[0];
    };
    const auto gradient_of = [&](const TensorFunction& f) {
      return [f](std::span<const LazyTensor> a) { return value_and_grad(f, a).second; };
    };
    const auto curvature = [&](const TensorFunction& f) {
      return jvp(gradient_of(f), arguments, direction).second;
    };
    const auto slope_of_slope = [&](const TensorFunction& f) {
      const TensorFunction inner = [&](std::span<const LazyTensor> a) {
        LazyTensor total = zeros({});
        const ListOfTensors grads = gradient_of(f)(a);
        for (std::size_t i = 0; i < grads.size(); ++i) total = total + sum(grads[i] * direction[i]);
        return total;
      };
      return value_and_grad(inner, arguments).second;
    };
    const std::string what = std::to_string(snapshots) + " snapshots";
    expect_as_written(along(loss(true)), along(loss(false)), 1e-4, what + ", forward");
    const ListOfTensors a = curvature(loss(true)), b = curvature(loss(false));
    const ListOfTensors c = slope_of_slope(loss(true)), d = slope_of_slope(loss(false));
    for (std::size_t i = 0; i < arguments.size(); ++i) {
      const std::string which = what + ", argument " + std::to_string(i);
      expect_as_written(a[i], b[i], 1e-3, which + ", forward over reverse");
      expect_as_written(c[i], d[i], 1e-3, which + ", reverse over reverse");
    }
  }
}

TEST_P(ScanListsTest, NestedAndCompiled) {
  // Each turn of the outer loop runs all layers, with the weights that it captures.
  const ListedNetwork network(4);
  const auto run = [&](bool scanned, const ListedNetwork& n) {
    const auto layers = [&](const LazyTensor& h) {
      ListedNetwork other = n;
      other.h = h;
      return (scanned ? other.scanned() : other.written_out()).carry[0];
    };
    LazyTensor h = n.h;
    if (scanned)
      return sum(for_loop(
          3, [&](auto, const LazyTensor& x) { return layers(x); }, h));
    for (int i = 0; i < 3; ++i) h = layers(h);
    return sum(h);
  };
  const ListOfTensors arguments = network.arguments();
  const auto of = [&](bool scanned) {
    return [&, scanned](std::span<const LazyTensor> a) {
      auto [value, grads] =
          value_and_grad([&](std::span<const LazyTensor> x) { return run(scanned, network.with(x)); }, a);
      grads.insert(grads.begin(), value);
      return grads;
    };
  };
  const ListOfTensors want = of(false)(arguments), got = of(true)(arguments);
  const auto step = compiled(VectorFunction(of(true)));
  for (int repetition = 0; repetition < 2; ++repetition) {
    const ListOfTensors replayed = step(arguments);
    for (std::size_t i = 0; i < want.size(); ++i) {
      expect_as_written(got[i], want[i], 5e-5, "nested, result " + std::to_string(i));
      expect_as_written(replayed[i], want[i], 5e-5, "compiled, result " + std::to_string(i));
    }
  }
}

TEST_P(ScanListsTest, MappedOverExamples) {
  // Examples that differ in what they begin with, in what is gone through, and in one tensor of a list.
  const ListedNetwork network(4);
  const LazyTensor h = listed_tensor({3, 2, 3}, 41), x = listed_tensor({3, 4, 2, 3}, 42),
                   w = listed_tensor({3, 3, 3}, 43);
  for (const std::int64_t snapshots : {0, 2}) {
    if (is_vulkan() && snapshots > 0) continue;
    const auto gradients = [&](bool scanned) {
      const VectorFunction one = [&, scanned](std::span<const LazyTensor> a) {
        const TensorFunction loss = [&](std::span<const LazyTensor> b) {
          ListedNetwork other = network;
          other.h = b[0], other.x = b[1], other.w[2] = b[2], other.b[0] = b[3];
          return loss_of_network(scanned ? other.scanned({.snapshots = snapshots}) : other.written_out());
        };
        auto [value, grads] = value_and_grad(loss, std::vector{a[0], a[1], a[2], network.b[0]});
        grads.push_back(value);
        return grads;
      };
      return vmap(one)(std::vector{h, x, w});
    };
    const ListOfTensors got = gradients(true), want = gradients(false);
    for (std::size_t i = 0; i < want.size(); ++i)
      expect_as_written(got[i], want[i], 3e-5, "result " + std::to_string(i));
  }
}

TEST_P(ScanListsTest, NothingIsCopiedAndOneTurnIsPlanned) {
  std::vector<std::size_t> steps;
  for (const std::int64_t layers : {4, 64}) {
    const ListedNetwork network(layers);
    const auto [value, grads] =
        value_and_grad([&](std::span<const LazyTensor> a) { return sum(network.with(a).scanned().carry[0]); },
                       network.arguments());
    ListOfTensors all = grads;
    all.push_back(value);
    const auto plan = plan_for(all);
    steps.push_back(plan->steps.size());
    // What is not an input or a result: the states of all turns, and what one turn needs.
    EXPECT_LT(plan->arena_bytes, 256 * 16 + layers * 2 * 3 * 4) << layers << " layers";
  }
  EXPECT_EQ(steps[0], steps[1]);
}

TEST_P(ScanListsTest, WhatNobodyReadsIsNotComputed) {
  // The advances of a gradient with snapshots give all carries, however few gradients are asked for.
  const LazyTensor x = listed_tensor({5, 3}, 7), h = listed_tensor({3}, 8);
  const auto loss = [&](bool scanned) {
    return [=](std::span<const LazyTensor> a) {
      const auto turn = [](const LazyTensor& y, const LazyTensor& i, const LazyTensor& row) {
        return sin(y) * row + astype(i, DType::f32) * 0.1;
      };
      if (scanned) {
        return sum(scan(
                       [&](std::span<const LazyTensor> c, std::span<const LazyTensor> rows) {
                         return ScanTurn{{c[0] + 1, turn(c[1], c[0], rows[0])}};
                       },
                       std::vector{zeros({}, DType::i32), a[0]}, std::vector{a[1]}, {.snapshots = 2})
                       .carry[1]);
      }
      LazyTensor y = a[0];
      for (std::int64_t i = 0; i < 5; ++i)
        y = turn(y, LazyTensor::full({}, static_cast<double>(i)), reshape(slice(a[1], 0, i, i + 1), {3}));
      return sum(y);
    };
  };
  const ListOfTensors arguments{h, x};
  const ListOfTensors got = value_and_grad(loss(true), arguments).second;
  const ListOfTensors want = value_and_grad(loss(false), arguments).second;
  eval({got[0]});  // alone
  expect_as_written(got[0], want[0], 1e-5, "of the first carry alone");
  expect_as_written(got[1], want[1], 1e-5, "of what is gone through, alone");
}

TEST_P(ScanListsTest, RefusesListsThatDoNotFit) {
  const LazyTensor h = listed_tensor({3}, 1), x = listed_tensor({4, 3}, 2);
  const auto body = [](std::span<const LazyTensor> c, std::span<const LazyTensor>) {
    return ScanTurn{{c[0]}};
  };
  const auto run = [&](std::vector<ListOfTensors> lists) {
    (void)scan(body, std::vector{h}, std::vector{x}, {.lists = std::move(lists)});
  };
  const ListOfTensors four = listed_tensors(4, {3}, 10), three = listed_tensors(3, {3}, 10);
  ListOfTensors other_shape = four, other_type = four;
  other_shape[2] = listed_tensor({5}, 3);
  other_type[3] = astype(four[3], DType::f16);
  EXPECT_MENTIONS(message_of<ShapeError>([&] { run({four, three}); }), "list 1 has 3 tensors");
  EXPECT_MENTIONS(message_of<ShapeError>([&] { run({other_shape}); }), "tensor 2 of list 0 has shape (5,)");
  EXPECT_MENTIONS(message_of<DTypeError>([&] { run({four, other_type}); }), "tensor 3 of list 1 is float16");
  EXPECT_MENTIONS(message_of<ValueError>([&] { run({{}}); }), "list 0 is empty");
  EXPECT_MENTIONS(message_of<ValueError>([&] { run({{h, {}, h, h}}); }), "list 0");
}

}  // namespace
}  // namespace caldera::testing
