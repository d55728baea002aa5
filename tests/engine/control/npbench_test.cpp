// Loop programs of NPBench and their gradients against PyTorch's: tests/golden/loops/generate.py made them,
// with PyTorch 1.13.
#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {
namespace {

using Tensors = std::span<const LazyTensor>;

LazyTensor coordinates(std::int64_t n, const LazyTensor& like) {
  return iota(Shape{n}, 0, DType::i64, like.device());
}
LazyTensor zero_of(const Shape& shape, const LazyTensor& like) {
  return zeros(shape, like.dtype(), like.device());
}
/// x[i], of the first axis.
LazyTensor row(const LazyTensor& x, const LazyTensor& i) {
  Shape shape;
  for (int d = 1; d < x.rank(); ++d) shape.push_back(x.shape(d));
  return reshape(take(x, reshape(i, Shape{1}), 0), shape);
}
/// A vector with `value` at i; a matrix with a row `value` at i.
LazyTensor with(const LazyTensor& x, const LazyTensor& i, const LazyTensor& value) {
  const LazyTensor is_there = coordinates(x.shape(0), x) == i;
  return where(x.rank() == 1 ? is_there : reshape(is_there, Shape{x.shape(0), 1}), value, x);
}
/// The sum of a * b over the elements below i.
LazyTensor dot_below(const LazyTensor& i, const LazyTensor& a, const LazyTensor& b) {
  return sum(where(coordinates(a.shape(0), a) < i, a * b, 0.0));
}
LazyTensor part(const LazyTensor& x, std::vector<Slice> slices) { return at(x, std::move(slices)).get(); }

const Slice kLow{{}, -2}, kMiddle{1, -1}, kHigh{2, {}};

/// `steps - 1` times b from a, and a from b, inside of the borders.
LazyTensor alternate(Tensors x, std::int64_t steps,
                     const std::function<LazyTensor(const LazyTensor&)>& stencil) {
  const std::vector<Slice> inner(static_cast<std::size_t>(x[0].rank()), kMiddle);
  const std::function<std::vector<LazyTensor>(const LazyTensor&, Tensors)> turn = [&](const LazyTensor&,
                                                                                      Tensors now) {
    const LazyTensor b = at(now[1], inner).set(stencil(now[0]));
    return std::vector{at(now[0], inner).set(stencil(b)), b};
  };
  return for_loop(steps - 1, turn, x)[0];
}

LazyTensor jacobi_1d(Tensors x) {
  return sum(alternate(x, 10, [](const LazyTensor& a) {
    return 0.33333 * (part(a, {kLow}) + part(a, {kMiddle}) + part(a, {kHigh}));
  }));
}

LazyTensor jacobi_2d(Tensors x) {
  return sum(alternate(x, 10, [](const LazyTensor& a) {
    return 0.2 * (part(a, {kMiddle, kMiddle}) + part(a, {kMiddle, kLow}) + part(a, {kMiddle, kHigh}) +
                  part(a, {kHigh, kMiddle}) + part(a, {kLow, kMiddle}));
  }));
}

LazyTensor heat_3d(Tensors x) {
  return sum(alternate(x, 5, [](const LazyTensor& a) {
    const LazyTensor c = part(a, {kMiddle, kMiddle, kMiddle});
    return 0.125 * (part(a, {kHigh, kMiddle, kMiddle}) - 2.0 * c + part(a, {kLow, kMiddle, kMiddle})) +
           0.125 * (part(a, {kMiddle, kHigh, kMiddle}) - 2.0 * c + part(a, {kMiddle, kLow, kMiddle})) +
           0.125 * (part(a, {kMiddle, kMiddle, kHigh}) - 2.0 * c + part(a, {kMiddle, kMiddle, kLow})) + c;
  }));
}

LazyTensor seidel_2d(Tensors x) {
  const std::int64_t n = x[0].shape(0);
  const auto column = [&](const LazyTensor& j, const LazyTensor& of) {
    return with(of, j, (row(of, j) + row(of, j - 1)) / 9.0);
  };
  const auto line = [&](const LazyTensor& turn, const LazyTensor& a) {
    const LazyTensor i = turn + 1;
    const LazyTensor above = row(a, i - 1), own = row(a, i), below = row(a, i + 1);
    const LazyTensor sums = part(own, {kMiddle}) + part(above, {kLow}) + part(above, {kMiddle}) +
                            part(above, {kHigh}) + part(own, {kHigh}) + part(below, {kLow}) +
                            part(below, {kMiddle}) + part(below, {kHigh});
    const LazyTensor swept = for_loop(
        n - 2, [&](const LazyTensor& j, const LazyTensor& of) { return column(j + 1, of); },
        at(own, {kMiddle}).set(sums));
    return with(a, i, swept);
  };
  return sum(for_loop(
      3, [&](const LazyTensor&, const LazyTensor& a) { return for_loop(n - 2, line, a); }, x[0]));
}

LazyTensor gemm(Tensors x) { return sum(1.5 * matmul(x[0], x[1]) + 1.2 * x[2]); }
LazyTensor atax(Tensors x) { return sum(matmul(matmul(x[0], x[1]), x[0])); }
LazyTensor bicg(Tensors x) { return sum(matmul(x[2], x[0])) + sum(matmul(x[0], x[1])); }
LazyTensor mvt(Tensors x) { return sum(x[1] + matmul(x[0], x[3])) + sum(x[2] + matmul(x[4], x[0])); }

LazyTensor trisolv(Tensors x) {
  const LazyTensor &l = x[0], &b = x[1];
  return sum(for_loop(
      b.shape(0),
      [&](const LazyTensor& i, const LazyTensor& solved) {
        const LazyTensor line = row(l, i);
        return with(solved, i, (row(b, i) - dot_below(i, line, solved)) / row(line, i));
      },
      zero_of(b.shape(), b)));
}

LazyTensor cholesky(Tensors x) {
  return sum(for_loop(
      x[0].shape(0),
      [&](const LazyTensor& i, const LazyTensor& a) {
        // The columns left of the diagonal: as many as the row's number.
        const std::vector<LazyTensor> first{zeros({}, DType::i64, a.device()), row(a, i)};
        const LazyTensor line = while_loop(
            [&](Tensors s) { return s[0] < i; },
            [&](Tensors s) {
              const LazyTensor other = row(a, s[0]);
              const LazyTensor value = (row(s[1], s[0]) - dot_below(s[0], s[1], other)) / row(other, s[0]);
              return std::vector{s[0] + 1, with(s[1], s[0], value)};
            },
            first, {.snapshots = 3})[1];
        return with(a, i, with(line, i, sqrt(row(line, i) - dot_below(i, line, line))));
      },
      x[0]));
}

LazyTensor lu(Tensors x) {
  const std::int64_t n = x[0].shape(0);
  return sum(for_loop(
      n,
      [&](const LazyTensor& i, const LazyTensor& a) {
        const LazyTensor columns = transpose(a);
        const LazyTensor line = for_loop(
            n,
            [&](const LazyTensor& j, const LazyTensor& now) {
              return cond(
                  j < i,
                  [&](const LazyTensor& of) {
                    const LazyTensor column = row(columns, j);
                    return with(of, j, (row(of, j) - dot_below(j, of, column)) / row(column, j));
                  },
                  [](const LazyTensor& of) { return of; }, now);
            },
            row(a, i));
        const LazyTensor at_right = coordinates(n, a) >= i;
        const LazyTensor taken = matmul(where(at_right, 0.0, line), a);
        return with(a, i, line - where(at_right, taken, 0.0));
      },
      x[0]));
}

LazyTensor durbin(Tensors x) {
  const LazyTensor& r = x[0];
  const std::int64_t n = r.shape(0);
  const LazyTensor zero = zeros({}, DType::i64, r.device());
  const std::vector<LazyTensor> first{with(zero_of(Shape{n}, r), zero, -row(r, zero)), -row(r, zero),
                                      ones({}, r.dtype(), r.device())};
  const std::function<std::vector<LazyTensor>(const LazyTensor&, Tensors)> turn = [&](const LazyTensor& i,
                                                                                      Tensors now) {
    const LazyTensor k = i + 1;
    const LazyTensor turned = clip(k - 1 - coordinates(n, r), 0, n - 1);
    const LazyTensor &y = now[0], &alpha = now[1];
    const LazyTensor beta = now[2] * (1.0 - alpha * alpha);
    const LazyTensor next = -(row(r, k) + dot_below(k, take(r, turned, 0), y)) / beta;
    const LazyTensor grown = where(coordinates(n, r) < k, y + next * take(y, turned, 0), y);
    return std::vector{with(grown, k, next), next, beta};
  };
  return sum(for_loop(n - 1, turn, first)[0]);
}

LazyTensor go_fast(Tensors x) {
  const LazyTensor& a = x[0];
  const LazyTensor trace = for_loop(
      a.shape(0), [&](const LazyTensor& i, const LazyTensor& t) { return t + tanh(row(row(a, i), i)); },
      zero_of({}, a));
  return sum(a + trace);
}

LazyTensor squared_softmax(const LazyTensor& x) {
  const LazyTensor y = softmax(x);
  return sum(y * y);
}
LazyTensor softmax_program(Tensors x) { return squared_softmax(x[0]); }
LazyTensor mlp(Tensors x) {
  const LazyTensor h = relu(matmul(x[0], x[1]) + x[2]);
  return squared_softmax(matmul(relu(matmul(h, x[3]) + x[4]), x[5]) + x[6]);
}

LazyTensor conv2d(Tensors x) {
  const std::int64_t k = x[1].shape(0), h = x[0].shape(1) - k + 1, w = x[0].shape(2) - k + 1;
  const LazyTensor weights = reshape(x[1], Shape{k * k, x[1].shape(2), x[1].shape(3)});
  return sum(for_loop(
      k * k,
      [&](const LazyTensor& offset, const LazyTensor& out) {
        const LazyTensor down = floor_divide(offset, k), across = remainder(offset, k);
        const LazyTensor window =
            take(take(x[0], coordinates(h, x[0]) + down, 1), coordinates(w, x[0]) + across, 2);
        return out + matmul(window, row(weights, offset));
      },
      broadcast_to(x[2], Shape{x[0].shape(0), h, w, x[1].shape(3)})));
}

struct Row {
  const char* name;
  std::vector<const char*> inputs;
  LazyTensor (*program)(Tensors);
};

const Row kRows[] = {
    {"jacobi_1d", {"a", "b"}, jacobi_1d},
    {"jacobi_2d", {"a", "b"}, jacobi_2d},
    {"seidel_2d", {"a"}, seidel_2d},
    {"heat_3d", {"a", "b"}, heat_3d},
    {"gemm", {"a", "b", "c"}, gemm},
    {"atax", {"a", "x"}, atax},
    {"bicg", {"a", "p", "r"}, bicg},
    {"mvt", {"a", "x1", "x2", "y1", "y2"}, mvt},
    {"trisolv", {"l", "b"}, trisolv},
    {"cholesky", {"a"}, cholesky},
    {"lu", {"a"}, lu},
    {"durbin", {"r"}, durbin},
    {"go_fast", {"a"}, go_fast},
    {"softmax", {"x"}, softmax_program},
    {"mlp", {"x", "w1", "b1", "w2", "b2", "w3", "b3"}, mlp},
    {"conv2d", {"x", "weights", "bias"}, conv2d},
};

class NpbenchTest : public OpTest {};
INSTANTIATE_TEST_SUITE_P(Devices, NpbenchTest, ::testing::ValuesIn(op_settings()), op_setting_name);

TEST_P(NpbenchTest, GradientsArePyTorchs) {
  if (!supports(DType::f64)) GTEST_SKIP() << "no f64";
  for (const Row& r : kRows) {
    const std::string path = std::string("tests/golden/loops/") + r.name + ".json";
    std::ifstream file(path);
    ASSERT_TRUE(file) << path;
    const nlohmann::json golden = nlohmann::json::parse(file);
    std::vector<LazyTensor> x;
    for (const char* name : r.inputs) {
      const auto& input = golden.at("inputs").at(name);
      Shape shape;
      for (const std::int64_t extent : input.at("shape")) shape.push_back(extent);
      x.push_back(LazyTensor::from_vector(input.at("values").get<std::vector<double>>(), shape, device()));
    }
    const auto [loss, grads] = value_and_grad(r.program, x);
    const double expected = golden.at("loss");
    EXPECT_NEAR(loss.item<double>(), expected, 1e-10 * std::abs(expected)) << r.name;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const std::vector<double> want = golden.at("gradients").at(r.inputs[i]).at("values");
      const std::vector<double> got = grads[i].to_vector<double>();
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t k = 0; k < want.size(); ++k)
        ASSERT_NEAR(got[k], want[k], 1e-10 * (1 + std::abs(want[k])))
            << r.name << " " << r.inputs[i] << " " << k;
    }
  }
}

/// The steps of a plan, and of those that it runs.
std::size_t count_steps(const Plan& plan, const std::function<bool(const Step&)>& is_meant) {
  std::size_t count = 0;
  for (const Step& step : plan.steps) {
    count += is_meant(step) ? 1 : 0;
    if (const auto* control = step.if_a<ControlStep>()) {
      for (const ControlPlan& part : control->parts) count += count_steps(*part.plan, is_meant);
    }
  }
  return count;
}

TEST_P(NpbenchTest, TheGradientOfALinearSweepSweepsOnce) {
  // The gradient of seidel_2d depends on no value of it, so its plan has no loop forward: as many loops as
  // the value's has, each the other way.
  const LazyTensor a = zeros({10, 10}, DType::f32);
  const auto [loss, grads] = value_and_grad(seidel_2d, std::vector{a});
  const auto loops = [](const LazyTensor& of) {
    return count_steps(*plan_for({of}), [](const Step& step) { return step.is<ControlStep>(); });
  };
  EXPECT_EQ(loops(loss), 3U);
  EXPECT_EQ(loops(grads[0]), 3U);
}

}  // namespace
}  // namespace caldera::testing
