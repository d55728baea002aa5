// Masks by coordinates on the CPU device, which splits rows of scores where a comparison changes: kernels of
// every form that it looks into, and of some that it must leave alone.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/cpu/cpu_backend.h"
#include "tests/support/attention_case.h"
#include "tests/support/plan_case.h"

namespace caldera::testing {
namespace {

using Value = KernelBuilder::Value;

/// A mask, from the coordinates of the query and of the key. `extra` is a boolean input of one element a key.
struct Mask {
  const char* name;
  std::function<Value(KernelBuilder&, Value query, Value key)> keep;
  bool extra = false;
  int shifts = 0;             // i32 scalar arguments that `keep` asks for: 5, then 9
  std::int64_t key_step = 1;  // of the key's coordinate along the keys
};

constexpr std::int64_t kHeads = 2;
constexpr std::int64_t kD = 8;

/// select(mask, x * scale, otherwise), where x is input 0.
std::shared_ptr<const Kernel> masked(const Mask& mask, int given) {
  KernelBuilder b("masked");
  const Value raw = b.load(DType::f32);
  for (int i = 1; i < given; ++i) b.load(DType::f32);
  const Value x = b.op(ScalarOp::mul, raw, b.scalar(DType::f32));
  const Value query = b.index();
  const Value key = b.index();
  const Value keep = mask.keep(b, query, key);
  return b.store(b.op(ScalarOp::select, keep, x, b.scalar(DType::f32))).finish();
}

void check(const Mask& mask, std::int64_t m, std::int64_t n, double fill) {
  SCOPED_TRACE(std::string(mask.name) + " " + std::to_string(m) + "x" + std::to_string(n));
  PlanCase c(Device{});
  const auto queries = [m](int buffer, bool along_d) {
    return view(buffer, {m * kD, kD, 0, along_d ? 1 : 0, along_d ? 0 : 1});
  };
  const auto keys = [n](int buffer, bool along_d) {
    return view(buffer, {n * kD, 0, kD, along_d ? 1 : 0, along_d ? 0 : 1});
  };
  const auto rows = [m](int buffer) { return view(buffer, {m, 1, 0, 0, 0}); };
  const int q = c.input(DType::f32, kHeads * m * kD, {-1, 1});
  const int k = c.input(DType::f32, kHeads * n * kD, {-1, 1});
  const int v = c.input(DType::f32, kHeads * n * kD, {-1, 1});
  const int go = c.input(DType::f32, kHeads * m * kD, {-1, 1});
  const int delta = c.input(DType::f32, kHeads * m, {-1, 1});
  const int lse = c.input(DType::f32, kHeads * m, {2, 4});
  const int extra = c.input(DType::boolean, n);
  const int scale = c.scalar(DType::f32, floating(0.5));
  const int otherwise = c.scalar(DType::f32, floating(fill));
  const int zero = c.scalar(DType::f32, floating(0));
  const int shifts[] = {c.scalar(DType::i32, integer(5)), c.scalar(DType::i32, integer(9))};
  std::vector<Operand> coordinates;
  if (mask.extra) coordinates.push_back(view(extra, {0, 0, 1, 0, 0}));
  coordinates.push_back(view(-1, {0, 1, 0, 0, 0}));
  coordinates.push_back(view(-1, {0, 0, mask.key_step, 0, 0}, mask.key_step < 0 ? n - 1 : 0));
  const auto add_scalars = [&](Step& step, int last) {
    step.scalars.push_back(scale);
    for (int i = 0; i < mask.shifts; ++i) step.scalars.push_back(shifts[i]);
    step.scalars.push_back(last);
  };
  const auto add = [&](StepKind kind, std::vector<Operand> operands, std::vector<Operand> outputs) {
    const bool backward = kind != StepKind::attention;
    for (int times = 0; times < (backward ? 2 : 1); ++times)
      operands.insert(operands.end(), coordinates.begin(), coordinates.end());
    operands.insert(operands.end(), outputs.begin(), outputs.end());
    Step& step = c.attention(kind, {kHeads, m, n, kD, kD}, std::move(operands), masked(mask, 1),
                             backward ? masked(mask, 2) : nullptr);
    step.scalars.clear();
    add_scalars(step, otherwise);
    if (backward) add_scalars(step, zero);
  };
  const int o = c.output(DType::f32, kHeads * m * kD);
  const int out_lse = c.output(DType::f32, kHeads * m);
  const int dq = c.output(DType::f32, kHeads * m * kD);
  const int dk = c.output(DType::f32, kHeads * n * kD);
  const int dv = c.output(DType::f32, kHeads * n * kD);
  const std::vector<Operand> forward = {queries(q, true), keys(k, true), keys(v, false)};
  std::vector<Operand> backward = forward;
  for (const Operand& operand : {queries(go, false), rows(lse), rows(delta)}) backward.push_back(operand);
  add(StepKind::attention, forward, {queries(o, false), rows(out_lse)});
  add(StepKind::attention_grad_q, backward, {queries(dq, true)});
  add(StepKind::attention_grad_kv, backward, {keys(dk, true), keys(dv, false)});
  c.check({2e-5, 5e-5});
}

std::vector<Mask> masks() {
  using B = KernelBuilder;
  const auto causal = [](B& b, Value i, Value j) { return b.op(ScalarOp::less_equal, j, i); };
  const auto window = [](B& b, Value i, Value j) {
    return b.op(ScalarOp::greater, j, b.op(ScalarOp::sub, i, b.scalar(DType::i32)));
  };
  return {
      {"causal", causal},
      {"causal, the other way round",
       [](B& b, Value i, Value j) { return b.op(ScalarOp::greater_equal, i, j); }},
      {"not above",
       [](B& b, Value i, Value j) { return b.op(ScalarOp::logical_not, b.op(ScalarOp::greater, j, i)); }},
      {"strictly below", [](B& b, Value i, Value j) { return b.op(ScalarOp::less, j, i); }},
      {"keys backwards", causal, false, 0, -1},
      {"every third coordinate", causal, false, 0, 3},
      {"shifted",
       [](B& b, Value i, Value j) {
         return b.op(ScalarOp::less_equal, b.op(ScalarOp::neg, b.op(ScalarOp::add, i, b.scalar(DType::i32))),
                     b.op(ScalarOp::neg, j));
       },
       false, 1},
      {"window",
       [=](B& b, Value i, Value j) { return b.op(ScalarOp::logical_and, causal(b, i, j), window(b, i, j)); },
       false, 1},
      {"causal and padded",
       [=](B& b, Value i, Value j) {
         return b.op(ScalarOp::logical_and, causal(b, i, j), b.load(DType::boolean));
       },
       true},
      {"causal or a prefix of the keys",
       [=](B& b, Value i, Value j) {
         return b.op(ScalarOp::logical_or, b.op(ScalarOp::less, j, b.scalar(DType::i32)), causal(b, i, j));
       },
       false, 1},
      {"padded, or in the window",
       [=](B& b, Value i, Value j) {
         return b.op(ScalarOp::logical_or, b.load(DType::boolean),
                     b.op(ScalarOp::logical_and, window(b, i, j), causal(b, i, j)));
       },
       true, 1},
      {"a comparison of floats",
       [](B& b, Value i, Value j) {
         return b.op(ScalarOp::less_equal, b.cast(j, DType::f32), b.cast(i, DType::f32));
       }},
      {"one that is also a number",
       [=](B& b, Value i, Value j) {
         const Value keep = causal(b, i, j);
         return b.op(ScalarOp::greater, b.cast(keep, DType::i32),
                     b.cast(b.op(ScalarOp::less, i, j), DType::i32));
       }},
      {"three comparisons",
       [=](B& b, Value i, Value j) {
         const Value inside = b.op(ScalarOp::logical_and, causal(b, i, j), window(b, i, j));
         return b.op(ScalarOp::logical_or, inside, b.op(ScalarOp::less, j, b.scalar(DType::i32)));
       },
       false, 2},
  };
}

TEST(CpuAttention, MasksByCoordinates) {
  for (const Mask& mask : masks()) {
    check(mask, 1, 70, -3);
    check(mask, 40, 130, -3);
    check(mask, 9, 600, -1e30);
  }
}

/// Enough work for several threads: the order of every sum is fixed all the same.
TEST(CpuAttention, ThreadsDoNotChangeResults) {
  AttentionCase forward(Device{},
                        {.heads = 3, .m = 300, .n = 700, .d = 64, .e = 32, .score = ScoreKind::causal});
  forward.add_forward();
  AttentionCase backward(Device{}, {.heads = 3, .m = 150, .n = 200, .d = 32, .e = 32});
  backward.add_gradients();
  const int before = cpu_threads();
  for (AttentionCase* c : {&forward, &backward}) {
    set_cpu_threads(1);
    const auto alone = c->plan().run_on_device();
    for (int threads : {2, 3}) {
      set_cpu_threads(threads);
      EXPECT_EQ(alone, c->plan().run_on_device()) << threads << " threads";
    }
  }
  set_cpu_threads(before);
}

}  // namespace
}  // namespace caldera::testing
