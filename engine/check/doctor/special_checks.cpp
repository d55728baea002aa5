// NaN, infinities, zeros of both signs, the largest numbers and the smallest.
#include <array>
#include <cmath>
#include <limits>
#include <string>

#include "engine/check/doctor/checks.h"
#include "engine/check/reference/kernel_builder.h"

namespace caldera::doctor {
namespace {

using reference::floating;
using reference::integer;
using reference::KernelBuilder;
using reference::view;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kSpecialInfinity = std::numeric_limits<double>::infinity();
constexpr const char* kIeee = "IEEE 754: SignedZeroInfNanPreserve";

/// Every kind of value, up to the largest that the type holds.
std::vector<double> values_of(DType type) {
  const double largest =
      type == DType::f32 ? double{std::numeric_limits<float>::max()} : std::numeric_limits<double>::max();
  return {kNan, kSpecialInfinity, -kSpecialInfinity, 0.0, -0.0, 1, -1, 2.5, -2.5, 3, 0.5,
          100,  largest,          -largest};
}

struct Group {
  int arity;
  std::vector<ScalarOp> ops;
  Tolerance f32, f64;     // where the result is finite
  bool denormal = false;  // some results are, which GPUs may flush to zero: see check_denormals()
};

const std::vector<Group>& groups() {
  using O = ScalarOp;
  static const std::vector<Group> kAll{
      {2, {O::add, O::sub, O::mul, O::maximum, O::minimum, O::copysign}, {}, {}},
      {2, {O::equal, O::not_equal, O::less, O::less_equal, O::greater, O::greater_equal}, {}, {}},
      {1, {O::neg, O::abs, O::sign, O::floor, O::ceil, O::isnan}, {}, {}},
      {1, {O::round, O::trunc}, {}, {}},
      {2, {O::div}, {1e-6, 0}, {1e-14, 0}, true},
      {1, {O::sqrt, O::exp, O::log, O::tanh, O::sigmoid, O::reciprocal}, {1e-4, 1e-6}, {1e-12, 1e-13}},
      {1, {O::exp2, O::log2, O::log10}, {1e-4, 1e-6}, {1e-12, 1e-13}},
  };
  return kAll;
}

/// Every value, or every pair of values.
void check_special_group(Examination& x, DType type, const Group& group) {
  const std::vector<double>& values = values_of(type);
  const auto n = static_cast<std::int64_t>(values.size());
  KernelBuilder b("special");
  const auto left = b.load(type);
  const auto right = group.arity > 1 ? b.load(type) : left;
  std::vector<Examination::Named> outputs;
  outputs.reserve(group.ops.size());
  Tolerance tolerance = type == DType::f32 ? group.f32 : group.f64;
  if (group.denormal && x.gpu()) tolerance.absolute = type == DType::f32 ? 0x1p-126 : 0x1p-1022;
  for (ScalarOp op : group.ops) {
    b.store(b.op(op, left, right));
    outputs.push_back({"special values: " + std::string(info(op).name) + " of " + std::string(name(type)),
                       {tolerance, kIeee}});
  }
  const auto kernel = b.finish();
  PlanCase plan(x.device());
  std::vector<Operand> operands{view(plan.input(type, n), {1, 0})};
  if (group.arity > 1) operands.push_back(view(plan.input(type, n), {0, 1}));
  for (const auto& output : kernel->outputs)
    operands.push_back(view(plan.output(output.type, n * n), {n, 1}));
  for (int buffer = 0; buffer < group.arity; ++buffer)
    for (std::int64_t i = 0; i < n; ++i) plan.set(buffer, i, floating(values[static_cast<std::size_t>(i)]));
  plan.region(kernel, {n, n}, std::move(operands));
  x.compare_each(plan, outputs);
}

/// 1 / x tells -0 from 0.
void check_signs_of_zero(Examination& x, DType type) {
  KernelBuilder b("signs");
  const auto value = b.load(type);
  const auto zero = b.op(ScalarOp::mul, value, b.scalar(type));  // 0 with the sign of x
  const auto kernel = b.store(b.op(ScalarOp::reciprocal, zero))
                          .store(b.op(ScalarOp::reciprocal, b.op(ScalarOp::neg, zero)))
                          .store(b.op(ScalarOp::reciprocal, b.op(ScalarOp::abs, zero)))
                          .store(b.op(ScalarOp::reciprocal, b.op(ScalarOp::sqrt, zero)))
                          .finish();
  PlanCase plan(x.device());
  const int in = plan.input(type, 33);
  std::vector<Operand> operands{view(in, {1})};
  for (std::size_t o = 0; o < kernel->outputs.size(); ++o)
    operands.push_back(view(plan.output(type, 33), {1}));
  plan.scalar(type, floating(0));
  plan.region(kernel, {33}, std::move(operands));
  x.compare("special values: sign of zero in " + std::string(name(type)), plan, {{}, kIeee});
}

void check_nan_in_reductions(Examination& x) {
  for (const CombineFacts& c : kCombines) {
    if (!accepts(c.combine, DType::f32)) continue;
    PlanCase plan(x.device());
    const int in = plan.input(DType::f32, 40 * 70, {0.9, 1.1});
    const int rows = plan.output(DType::f32, 40);
    const int columns = plan.output(DType::f32, 70);
    for (std::int64_t i = 0; i < 40; i += 3) plan.set(in, i * 70 + (7 * i) % 70, floating(kNan));
    const auto kernel = reference::reduce_kernel(c.combine, DType::f32);
    plan.region(kernel, {40, 70}, {view(in, {70, 1}), view(rows, {1, 0})}, 1);
    plan.region(kernel, {70, 40}, {view(in, {1, 70}), view(columns, {1, 0})}, 1);
    x.compare("special values: NaN in " + std::string(c.name), plan, {{1e-5, 0}, "70 roundings of f32"});
  }
}

/// Devices may flush denormal numbers to zero; nothing else may happen to them, and moving is no arithmetic.
void check_denormals(Examination& x) {
  KernelBuilder b("denormals");
  const auto in = b.load(DType::f32);
  const auto factor = b.scalar(DType::f32);
  const auto kernel = b.store(in)
                          .store(b.op(ScalarOp::mul, in, factor))
                          .store(b.op(ScalarOp::div, in, b.op(ScalarOp::reciprocal, factor)))
                          .finish();
  PlanCase plan(x.device());
  const int values = plan.input(DType::f32, 33);
  const int moved = plan.output(DType::f32, 33);
  const int scaled = plan.output(DType::f32, 33);
  const int divided = plan.output(DType::f32, 33);
  plan.scalar(DType::f32, floating(0.5));
  for (std::int64_t i = 0; i < 33; ++i) plan.set(values, i, floating(static_cast<double>(i - 16) * 0x1p-140));
  plan.region(kernel, {33}, {view(values, {1}), view(moved, {1}), view(scaled, {1}), view(divided, {1})});
  bool flushed = false;
  x.check("special values: denormal numbers", "IEEE 754, or zero where the device flushes", [&] {
    std::vector<std::string> wrong;
    const reference::DeviceRun run = plan.run_on(x.backend());
    const reference::PlanMemory expected = plan.expected();
    for (std::size_t o = 0; o < 3; ++o) {
      for (std::int64_t i = 0; i < 33; ++i) {
        const double got = reference::read_number(run.outputs.at(o), DType::f32, i).f;
        const double want = reference::read_number(expected.buffers.at(o + 1), DType::f32, i).f;
        if (got == want) continue;
        if (got == 0)
          flushed = true;
        else
          wrong.push_back("element " + std::to_string(i) + ": got " + std::to_string(got / 0x1p-140) +
                          " x 2^-140, want " + std::to_string(want / 0x1p-140) + " x 2^-140 or 0");
      }
    }
    return wrong;
  });
  if (flushed) x.skip("special values: denormals kept", "the device flushes denormal numbers to zero");
}

/// The CPU device promises what a conversion of NaN and of numbers out of range gives: 0, and the nearest.
void check_saturation(Examination& x, DType from) {
  KernelBuilder b("saturation");
  const auto value = b.load(from);
  constexpr DType kTargets[] = {DType::u8,  DType::u32, DType::i8,     DType::i16,
                                DType::i32, DType::i64, DType::boolean};
  const std::vector<double> values = values_of(from);
  const auto n = static_cast<std::int64_t>(values.size());
  PlanCase plan(x.device());
  const int in = plan.input(from, n + 4);
  std::vector<Operand> operands{view(in, {1})};
  for (DType to : kTargets) {
    b.store(b.cast(value, to), to);
    operands.push_back(view(plan.output(to, n + 4), {1}));
  }
  for (std::int64_t i = 0; i < n; ++i) plan.set(in, i, floating(values[static_cast<std::size_t>(i)]));
  constexpr std::array<double, 4> kEdges{2147483647.0, -2147483648.0, 255.5, -0.5};
  for (std::size_t i = 0; i < kEdges.size(); ++i)
    plan.set(in, n + static_cast<std::int64_t>(i), floating(kEdges[i]));
  plan.region(b.finish(), {n + 4}, std::move(operands));
  x.compare("special values: " + std::string(name(from)) + " to integers", plan,
            {{}, "NaN gives 0, what is out of range the nearest"});
}

}  // namespace

void check_special_values(Examination& x) {
  check_denormals(x);
  if (x.gpu() && !x.has_feature("nan-inf-preserve")) {
    x.skip("special values", "the driver keeps no NaN and infinities (SignedZeroInfNanPreserve)");
    return;
  }
  for (DType type : {DType::f32, DType::f64}) {
    if (!x.supports(type)) continue;
    for (const Group& group : groups()) check_special_group(x, type, group);
    check_signs_of_zero(x, type);
    if (!x.gpu()) check_saturation(x, type);
  }
  if (x.gpu())
    x.skip("special values: conversions to integers", "out of range they are the driver's on GPUs");
  check_nan_in_reductions(x);
}

}  // namespace caldera::doctor
