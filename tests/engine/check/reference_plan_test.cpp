// The interpreter of plans itself: known numbers, and gradients against finite differences.

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <random>
#include <vector>

#include "tests/support/plans/plan_case.h"
#include "tests/support/plans/row_kernels.h"

namespace caldera::testing {
namespace {

constexpr DType kPlanType = DType::f32;

/// A plan of one step with its memory.
struct Small {
  Plan plan;
  PlanMemory memory;

  int buffer(const std::vector<double>& values) {
    plan.buffers.push_back({.dtype = kPlanType, .bytes = static_cast<std::int64_t>(4 * values.size())});
    memory.buffers.emplace_back(4 * values.size());
    const int number = static_cast<int>(plan.buffers.size()) - 1;
    for (std::size_t i = 0; i < values.size(); ++i) set(number, i, values[i]);
    return number;
  }
  int scalar(double value) {
    std::vector<std::byte> raw(8);
    write_number(raw, kPlanType, 0, floating(value));
    std::uint64_t bits = 0;
    for (std::size_t i = 8; i-- > 0;) bits = bits << 8 | std::to_integer<std::uint64_t>(raw[i]);
    plan.scalars.push_back(kPlanType);
    memory.scalars.push_back(bits);
    return static_cast<int>(plan.scalars.size()) - 1;
  }
  void set(int number, std::size_t i, double value) {
    write_number(memory.buffers[static_cast<std::size_t>(number)], kPlanType, static_cast<std::int64_t>(i),
                 floating(value));
  }
  double get(int number, std::size_t i) const {
    return read_number(memory.buffers[static_cast<std::size_t>(number)], kPlanType,
                       static_cast<std::int64_t>(i))
        .f;
  }
  void run(const Step& step) {
    plan.steps = {step};
    run_reference(plan, memory);
  }
};

TEST(ReferencePlan, SoftmaxOfKnownNumbers) {
  Small s;
  const int x = s.buffer({0, std::log(2), std::log(3), 100, 100, 100});
  const int y = s.buffer(std::vector<double>(6));
  Step step;
  step.as<RegionStep>().kernel = softmax_kernel(kPlanType);
  step.dims = {2, 3};
  step.as<RegionStep>().reduce_rank = 1;
  step.operands = {view(x, {3, 1}), view(y, {3, 1})};
  s.run(step);
  const double wanted[] = {1. / 6, 1. / 3, 1. / 2, 1. / 3, 1. / 3, 1. / 3};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(s.get(y, i), wanted[i], 1e-7) << i;
}

TEST(ReferencePlan, RowOperandsAndResultsOfEmptyRows) {
  KernelBuilder b("sum");
  const auto x = b.load(kPlanType);
  const auto start = b.load_row(kPlanType);
  const auto sum = b.op(ScalarOp::row_sum, x);
  const auto kernel = b.store(b.op(ScalarOp::add, start, sum)).store(b.op(ScalarOp::sub, x, sum)).finish();
  for (std::int64_t length : {3, 0}) {
    Small s;
    const int in = s.buffer({1, 2, 3, 10, 20, 30});
    const int starts = s.buffer({100, 200});
    const int sums = s.buffer({-1, -1});
    const int rest = s.buffer(std::vector<double>(6, 7));
    Step step;
    step.as<RegionStep>().kernel = kernel;
    step.dims = {2, length};
    step.as<RegionStep>().reduce_rank = 1;
    step.operands = {view(in, {3, 1}), view(starts, {1, 0}), view(sums, {1, 0}), view(rest, {3, 1})};
    s.run(step);
    EXPECT_EQ(s.get(sums, 0), length == 3 ? 106 : 100);
    EXPECT_EQ(s.get(sums, 1), length == 3 ? 260 : 200);
    EXPECT_EQ(s.get(rest, 4), length == 3 ? -40 : 7);
  }
}

/// [1 2] [5 6; 7 8] + 10 [3] [1 2], times the column's bias, plus the number of the point.
TEST(ReferencePlan, ContractionOfKnownNumbers) {
  KernelBuilder b("epilogue");
  const auto p = b.load(kPlanType);
  const auto scaled = b.op(ScalarOp::mul, p, b.load(kPlanType));
  const auto kernel = b.store(b.op(ScalarOp::add, scaled, b.cast(b.index(), kPlanType))).store(p).finish();
  Small s;
  const int a = s.buffer({1, 2});
  const int w = s.buffer({5, 6, 7, 8});
  const int low = s.buffer({3});
  const int high = s.buffer({1, 2});
  const int bias = s.buffer({2, -1});
  const int z = s.buffer({0, 0});
  const int plain = s.buffer({0, 0});
  Step step;
  step.dims = {1, 2, 2};
  step.work = ContractStep{.segments = {{.k = 2}, {.k = 1, .scale = s.scalar(10)}}, .epilogue = kernel};
  step.operands = {view(a, {2, 0, 1}),    view(w, {0, 1, 2}),    view(low, {1, 0, 1}),
                   view(high, {0, 1, 2}), view(bias, {0, 1, 0}), view(-1, {0, 1, 0}, 100),
                   view(z, {2, 1, 0}),    view(plain, {2, 1, 0})};
  s.run(step);
  EXPECT_EQ(s.get(plain, 0), 19 + 30);
  EXPECT_EQ(s.get(plain, 1), 22 + 60);
  EXPECT_EQ(s.get(z, 0), 2 * 49 + 100);
  EXPECT_EQ(s.get(z, 1), -82 + 101);
}

/// Two keys, one of which has three times the weight of the other.
TEST(ReferencePlan, AttentionOfKnownNumbers) {
  KernelBuilder b("score");
  const auto kernel = b.store(b.op(ScalarOp::mul, b.load(kPlanType), b.scalar(kPlanType))).finish();
  Small s;
  const int q = s.buffer({2});
  const int k = s.buffer({1, 1 + std::log(3)});
  const int v = s.buffer({4, 8});
  const int o = s.buffer({0});
  const int highest = s.buffer({0});
  const int total = s.buffer({0});
  Step step;
  step.work = AttentionStep{.score = kernel, .gradient = {}, .causal = {}};
  step.dims = {1, 2, 1, 1};
  step.scalars = {s.scalar(0.5)};
  step.operands = {view(q, {1, 0, 1, 0}), view(k, {0, 1, 1, 0}),       view(v, {0, 1, 0, 1}),
                   view(o, {1, 0, 0, 1}), view(highest, {1, 0, 0, 0}), view(total, {1, 0, 0, 0})};
  s.run(step);
  EXPECT_NEAR(s.get(o, 0), 0.25 * 4 + 0.75 * 8, 1e-6);
  EXPECT_NEAR(s.get(highest, 0), 1 + std::log(3), 1e-6);
  EXPECT_NEAR(s.get(total, 0), 4.0 / 3, 1e-6);
}

/// tanh(raw * scale) + bias.
std::shared_ptr<const Kernel> bent_score() {
  KernelBuilder score("score");
  const auto bent =
      score.op(ScalarOp::tanh, score.op(ScalarOp::mul, score.load(kPlanType), score.scalar(kPlanType)));
  return score.store(score.op(ScalarOp::add, bent, score.load(kPlanType))).finish();
}

/// Its gradient by raw: ds * scale * (1 - tanh(raw * scale)^2).
std::shared_ptr<const Kernel> gradient_of_bent_score() {
  KernelBuilder gradient("gradient");
  const auto ds = gradient.load(kPlanType);
  const auto raw = gradient.load(kPlanType);
  const auto scale = gradient.scalar(kPlanType);
  const auto t = gradient.op(ScalarOp::tanh, gradient.op(ScalarOp::mul, raw, scale));
  const auto slope =
      gradient.op(ScalarOp::sub, scale, gradient.op(ScalarOp::mul, scale, gradient.op(ScalarOp::mul, t, t)));
  return gradient.store(gradient.op(ScalarOp::mul, ds, slope)).finish();
}

/// The gradients of sum(go o) by every element of q, k and v, with a score that is not linear:
/// AttentionStep's formulas against differences of the forward step.
TEST(ReferencePlan, AttentionGradientsAreDerivatives) {
  const std::size_t m = 3, n = 4, d = 2;
  Small s;
  std::mt19937 random(5);
  const auto random_buffer = [&](std::size_t count) {
    std::uniform_real_distribution<double> uniform(-1.5, 1.5);
    std::vector<double> values(count);
    for (double& value : values) value = uniform(random);
    return s.buffer(values);
  };
  const int q = random_buffer(m * d);
  const int k = random_buffer(n * d);
  const int v = random_buffer(n * d);
  const int bias = random_buffer(m * n);
  const int go = random_buffer(m * d);
  const int o = s.buffer(std::vector<double>(m * d));
  const int highest = s.buffer(std::vector<double>(m));
  const int total = s.buffer(std::vector<double>(m));
  const int delta = s.buffer(std::vector<double>(m));
  const int dq = s.buffer(std::vector<double>(m * d));
  const int dk = s.buffer(std::vector<double>(n * d));
  const int dv = s.buffer(std::vector<double>(n * d));
  Step forward;
  forward.work = AttentionStep{.score = bent_score(), .gradient = {}, .causal = {}};
  forward.dims = {3, 4, 2, 2};
  forward.scalars = {s.scalar(0.75)};
  const Operand of_q = view(q, {2, 0, 1, 0});
  const Operand of_k = view(k, {0, 2, 1, 0});
  const Operand of_v = view(v, {0, 2, 0, 1});
  const Operand of_bias = view(bias, {4, 1, 0, 0});
  const Operand of_highest = view(highest, {1, 0, 0, 0});
  const Operand of_total = view(total, {1, 0, 0, 0});
  forward.operands = {of_q, of_k, of_v, of_bias, view(o, {2, 0, 0, 1}), of_highest, of_total};
  const auto loss = [&] {
    s.run(forward);
    double sum = 0;
    for (std::size_t i = 0; i < m * d; ++i) sum += s.get(o, i) * s.get(go, i);
    return sum;
  };
  loss();
  for (std::size_t i = 0; i < m; ++i)
    s.set(delta, i, s.get(o, 2 * i) * s.get(go, 2 * i) + s.get(o, 2 * i + 1) * s.get(go, 2 * i + 1));
  Step backward = forward;
  auto& work = backward.as<AttentionStep>();
  work.pass = AttentionPass::grad_q;
  work.gradient = gradient_of_bent_score();
  backward.scalars.push_back(backward.scalars[0]);
  backward.operands = {of_q,
                       of_k,
                       of_v,
                       view(go, {2, 0, 0, 1}),
                       of_highest,
                       of_total,
                       view(delta, {1, 0, 0, 0}),
                       of_bias,
                       view(dq, {2, 0, 1, 0})};
  s.run(backward);
  work.pass = AttentionPass::grad_kv;
  backward.operands.back() = view(dk, {0, 2, 1, 0});
  backward.operands.push_back(view(dv, {0, 2, 0, 1}));
  s.run(backward);

  const int pairs[][2] = {{q, dq}, {k, dk}, {v, dv}};
  for (const auto& [x, dx] : pairs) {
    const std::size_t count = s.memory.buffers[static_cast<std::size_t>(x)].size() / 4;
    for (std::size_t i = 0; i < count; ++i) {
      const double value = s.get(x, i);
      constexpr double kStep = 1.0 / 128;
      s.set(x, i, value + kStep);
      const double above = loss();
      s.set(x, i, value - kStep);
      const double below = loss();
      s.set(x, i, value);
      EXPECT_NEAR(s.get(dx, i), (above - below) / (2 * kStep), 1e-4) << "buffer " << x << " element " << i;
    }
  }
}

}  // namespace
}  // namespace caldera::testing
