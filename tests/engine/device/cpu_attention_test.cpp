// Attention on the CPU device. Masks by coordinates, where it splits rows of scores at the places where a
// comparison changes: kernels of every form that it looks into, and of some that it must leave alone. Rows
// that are masked whole. Numbers of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/device/cpu/cpu_backend.h"
#include "engine/device/cpu_threads.h"
#include "tests/support/plans/attention_case.h"
#include "tests/support/plans/plan_case.h"

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
  const int highest = c.input(DType::f32, kHeads * m, {1, 2});
  const int total = c.input(DType::f32, kHeads * m, {2, 6});
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
  const auto add = [&](AttentionPass pass, std::vector<Operand> operands, std::vector<Operand> outputs) {
    const bool backward = pass != AttentionPass::forward;
    for (int times = 0; times < (backward ? 2 : 1); ++times)
      operands.insert(operands.end(), coordinates.begin(), coordinates.end());
    operands.insert(operands.end(), outputs.begin(), outputs.end());
    Step& step = c.attention(pass, {kHeads, m, n, kD, kD}, std::move(operands), masked(mask, 1),
                             backward ? masked(mask, 2) : nullptr);
    step.scalars.clear();
    add_scalars(step, otherwise);
    if (backward) add_scalars(step, zero);
  };
  const int o = c.output(DType::f32, kHeads * m * kD);
  const int out_highest = c.output(DType::f32, kHeads * m);
  const int out_total = c.output(DType::f32, kHeads * m);
  const int dq = c.output(DType::f32, kHeads * m * kD);
  const int dk = c.output(DType::f32, kHeads * n * kD);
  const int dv = c.output(DType::f32, kHeads * n * kD);
  const int joined_dk = c.output(DType::f32, kHeads * n * kD);
  const int joined_dv = c.output(DType::f32, kHeads * n * kD);
  const int joined_dq = c.output(DType::f32, kHeads * m * kD);
  const std::vector<Operand> forward = {queries(q, true), keys(k, true), keys(v, false)};
  std::vector<Operand> backward = forward;
  for (const Operand& operand : {queries(go, false), rows(highest), rows(total), rows(delta)})
    backward.push_back(operand);
  add(AttentionPass::forward, forward, {queries(o, false), rows(out_highest), rows(out_total)});
  add(AttentionPass::grad_q, backward, {queries(dq, true)});
  add(AttentionPass::grad_kv, backward, {keys(dk, true), keys(dv, false)});
  add(AttentionPass::grad_qkv, backward,
      {keys(joined_dk, true), keys(joined_dv, false), queries(joined_dq, true)});
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

/// Attention under a causal mask, in f64 and straight from its formulas.
struct PlainAttention {
  std::int64_t m, n, d, e, offset;  // keys n > m + offset have the score `fill`
  double scale, fill;
  std::vector<double> q = {}, k = {}, v = {}, go = {}, delta = {};
  std::vector<double> o = {}, highest = {}, total = {}, dq = {}, dk = {}, dv = {};

  static double& at(std::vector<double>& x, std::int64_t i, std::int64_t j, std::int64_t columns) {
    return x[static_cast<std::size_t>(i * columns + j)];
  }

  void compute() {
    for (std::vector<double>* x : {&o, &highest, &total, &dq, &dk, &dv}) x->clear();
    o.resize(static_cast<std::size_t>(m * e));
    dq.resize(q.size());
    dk.resize(k.size());
    dv.resize(v.size());
    for (std::int64_t i = 0; i < m; ++i) {
      std::vector<double> p;
      for (std::int64_t j = 0; j < n; ++j) {
        double raw = 0;
        for (std::int64_t c = 0; c < d; ++c) raw += at(q, i, c, d) * at(k, j, c, d);
        p.push_back(j <= i + offset ? scale * raw : fill);
      }
      highest.push_back(*std::max_element(p.begin(), p.end()));
      for (double& x : p) x = std::exp(x - highest.back());
      total.push_back(std::accumulate(p.begin(), p.end(), 0.0));
      for (std::int64_t j = 0; j < n; ++j) {
        const double share = p[static_cast<std::size_t>(j)] / total.back();
        double d_share = 0;
        for (std::int64_t c = 0; c < e; ++c) {
          d_share += at(go, i, c, e) * at(v, j, c, e);
          at(o, i, c, e) += share * at(v, j, c, e);
          at(dv, j, c, e) += share * at(go, i, c, e);
        }
        const double d_raw = share * (d_share - delta[static_cast<std::size_t>(i)]) * scale;
        for (std::int64_t c = 0; c < d; ++c) {
          at(dq, i, c, d) += d_raw * at(k, j, c, d);
          at(dk, j, c, d) += d_raw * at(q, i, c, d);
        }
      }
    }
  }
};

/// Some rows see no key, and their scores are all one large number: they weigh all keys alike. The gradient's
/// kernel passes everything on, so that the weights of masked keys show in dq and dk too.
void check_masked_rows(std::int64_t n, double fill, bool hint) {
  SCOPED_TRACE(std::to_string(n) + " keys, fill " + std::to_string(fill) + (hint ? ", hint" : ""));
  PlainAttention x{.m = 150, .n = n, .d = 8, .e = 5, .offset = -70, .scale = 0.5, .fill = fill};
  PlanCase c(Device{});
  const auto input = [&](std::vector<double>& values, std::int64_t count) {
    const int buffer = c.input(DType::f32, count);
    std::uniform_int_distribution<int> eighths(-8, 8);
    for (std::int64_t i = 0; i < count; ++i) {
      values.push_back(eighths(c.random()) / 8.0);
      c.set(buffer, i, floating(values.back()));
    }
    return buffer;
  };
  const Operand q = view(input(x.q, x.m * x.d), {x.d, 0, 1, 0});
  const Operand k = view(input(x.k, n * x.d), {0, x.d, 1, 0});
  const Operand v = view(input(x.v, n * x.e), {0, x.e, 0, 1});
  const Operand go = view(input(x.go, x.m * x.e), {x.e, 0, 0, 1});
  const Operand delta = view(input(x.delta, x.m), {1, 0, 0, 0});
  const Operand o = view(c.output(DType::f32, x.m * x.e), {x.e, 0, 0, 1});
  const Operand highest = view(c.output(DType::f32, x.m), {1, 0, 0, 0});
  const Operand total = view(c.output(DType::f32, x.m), {1, 0, 0, 0});
  const Operand dq = view(c.output(DType::f32, x.m * x.d), {x.d, 0, 1, 0});
  const Operand dk = view(c.output(DType::f32, n * x.d), {0, x.d, 1, 0});
  const Operand dv = view(c.output(DType::f32, n * x.e), {0, x.e, 0, 1});
  const Operand all_dk = view(c.output(DType::f32, n * x.d), {0, x.d, 1, 0});
  const Operand all_dv = view(c.output(DType::f32, n * x.e), {0, x.e, 0, 1});
  const Operand all_dq = view(c.output(DType::f32, x.m * x.d), {x.d, 0, 1, 0});
  const Operand query = view(-1, {1, 0, 0, 0}, x.offset);
  const Operand key = view(-1, {0, 1, 0, 0});
  const int scale = c.scalar(DType::f32, floating(x.scale));
  const int otherwise = c.scalar(DType::f32, floating(fill));

  KernelBuilder score("score");
  const Value scaled = score.op(ScalarOp::mul, score.load(DType::f32), score.scalar(DType::f32));
  const Value last = score.index();
  const Value keep = score.op(ScalarOp::less_equal, score.index(), last);
  score.store(score.op(ScalarOp::select, keep, scaled, score.scalar(DType::f32)));
  KernelBuilder gradient("gradient");
  const Value d_score = gradient.load(DType::f32);
  gradient.load(DType::f32);
  gradient.store(gradient.op(ScalarOp::mul, d_score, gradient.scalar(DType::f32)));
  const auto score_kernel = score.finish();
  const auto gradient_kernel = gradient.finish();
  const auto add = [&](AttentionPass pass, std::vector<Operand> operands) {
    const bool backward = pass != AttentionPass::forward;
    Step& step = c.attention(pass, {x.m, n, x.d, x.e}, std::move(operands), score_kernel,
                             backward ? gradient_kernel : nullptr);
    step.scalars = {scale, otherwise};
    if (backward) step.scalars.push_back(scale);
    if (hint) step.as<AttentionStep>().causal = {otherwise, x.offset, -1};
  };
  add(AttentionPass::forward, {q, k, v, query, key, o, highest, total});
  add(AttentionPass::grad_q, {q, k, v, go, highest, total, delta, query, key, dq});
  add(AttentionPass::grad_kv, {q, k, v, go, highest, total, delta, query, key, dk, dv});
  add(AttentionPass::grad_qkv, {q, k, v, go, highest, total, delta, query, key, all_dk, all_dv, all_dq});

  x.fill = static_cast<float>(fill);
  x.compute();
  const auto outputs = c.run_on_device();
  const std::pair<const char*, const std::vector<double>*> expected[] = {
      {"o", &x.o},   {"highest", &x.highest}, {"total", &x.total},  {"dq", &x.dq},       {"dk", &x.dk},
      {"dv", &x.dv}, {"dk of all", &x.dk},    {"dv of all", &x.dv}, {"dq of all", &x.dq}};
  for (std::size_t output = 0; output < outputs.size(); ++output) {
    const auto& [name, want] = expected[output];
    for (std::size_t i = 0; i < want->size(); ++i) {
      const double got = read_number(outputs[output], DType::f32, static_cast<std::int64_t>(i)).f;
      ASSERT_NEAR(got, (*want)[i], 1e-5 * (1 + std::fabs((*want)[i]))) << name << ", element " << i;
    }
  }
}

TEST(CpuAttention, RowsThatAreMaskedWhole) {
  for (double fill : {-1e9, -1e30})
    for (std::int64_t n : {3, 40, 700})
      for (bool hint : {false, true}) check_masked_rows(n, fill, hint);
}

/// As many heads as every machine's cores share out evenly, so that one walk makes all gradients.
TEST(CpuAttention, AllGradientsOfManyHeads) {
  const std::int64_t heads = 2 * std::max(1U, std::thread::hardware_concurrency());
  const AttentionSetting settings[] = {
      {.heads = heads, .m = 70, .n = 90, .d = 8, .e = 16, .score = ScoreKind::causal, .joined = true},
      {.heads = heads, .m = 3, .n = 130, .d = 16, .e = 8, .score = ScoreKind::capped, .joined = true},
      {.heads = heads,
       .m = 600,
       .n = 5,
       .d = 8,
       .e = 8,
       .score = ScoreKind::bias,
       .heads_inside = true,
       .joined = true},
      {.batch = 2, .heads = heads, .group = 2, .m = 9, .n = 70, .d = 5, .e = 7, .joined = true},
      {.heads = heads, .m = 0, .n = 7, .d = 8, .e = 8, .joined = true},
      {.heads = heads, .m = 7, .n = 0, .d = 8, .e = 8, .joined = true}};
  for (const AttentionSetting& s : settings) {
    SCOPED_TRACE(s.text());
    AttentionCase c(Device{}, s);
    c.add_gradients();
    c.plan().check({3e-5, 5e-5});
  }
}

/// Enough work for several threads: the order of every sum is fixed all the same.
TEST(CpuAttention, ThreadsDoNotChangeResults) {
  AttentionCase forward(Device{},
                        {.heads = 3, .m = 300, .n = 700, .d = 64, .e = 32, .score = ScoreKind::causal});
  forward.add_forward();
  AttentionCase backward(Device{}, {.heads = 3, .m = 150, .n = 200, .d = 32, .e = 32});
  backward.add_gradients();
  AttentionCase joined(Device{}, {.heads = 3, .m = 150, .n = 200, .d = 32, .e = 32, .joined = true});
  joined.add_gradients();
  const int before = cpu_threads();
  for (AttentionCase* c : {&forward, &backward, &joined}) {
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
