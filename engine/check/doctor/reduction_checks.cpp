// Reductions over inner, outer, middle and all dimensions; long ones, empty ones, of expressions.
#include <string>

#include "engine/check/doctor/checks.h"
#include "engine/check/reference/kernel_builder.h"
#include "engine/device/backend.h"

namespace caldera::doctor {
namespace {

using reference::KernelBuilder;
using reference::Range;
using reference::reduce_kernel;
using reference::view;

constexpr DType kReducedTypes[] = {DType::u8,  DType::u32, DType::i8,  DType::i16,
                                   DType::i32, DType::i64, DType::f32, DType::f64};

std::string title(Combine combine, DType type) {
  return std::string(facts(combine).name) + " of " + std::string(name(type));
}

/// Products stay finite, sums of positive numbers do not cancel.
Range range_of(Combine combine) {
  return combine == Combine::product ? Range{0.99, 1.01}
         : combine == Combine::sum   ? Range{0.5, 1.5}
                                     : Range{-4, 4};
}

Allowed allowed_of_reduction(Combine combine, DType type, std::int64_t n) {
  if (!is_floating(type) || combine == Combine::maximum || combine == Combine::minimum)
    return {{}, "integers and extremes: exact"};
  const double ulp = type == DType::f64 ? 2.3e-16 : 1.2e-7;
  return combine == Combine::sum
             ? Allowed{{ulp * (8 + static_cast<double>(n) / 512), 0}, "partial sums of 512 terms in sequence"}
             : Allowed{{ulp * static_cast<double>(n), 0}, "one rounding a factor"};
}

void check_reduced_layouts(Examination& x, Combine combine, DType type) {
  const auto kernel = reduce_kernel(combine, type);
  PlanCase plan(x.device(), 9);
  std::int64_t most = 0;
  const std::int64_t shapes[][3] = {{1, 1, 1}, {7, 33, 5}, {2, 1025, 3}, {33, 2, 70}};
  struct Buffers {
    std::int64_t a, b, d;
    int in, inner, outer, middle, all, outer_two;
  };
  std::vector<Buffers> cases;
  cases.reserve(std::size(shapes));
  for (const auto& s : shapes) {
    cases.push_back({.a = s[0], .b = s[1], .d = s[2]});
    cases.back().in = plan.input(type, s[0] * s[1] * s[2], range_of(combine));
    most = std::max(most, s[0] * s[1] * s[2]);
  }
  for (Buffers& c : cases) {
    c.inner = plan.output(type, c.a * c.b);
    c.outer = plan.output(type, c.b * c.d);
    c.middle = plan.output(type, c.a * c.d);
    c.all = plan.output(type, 1);
    c.outer_two = plan.output(type, c.d);
  }
  const int none = plan.output(type, 6);
  for (const auto& [a, b, d, in, inner, outer, middle, all, outer_two] : cases) {
    plan.region(kernel, {a, b, d}, {view(in, {b * d, d, 1}), view(inner, {b, 1, 0})}, 1);
    plan.region(kernel, {b, d, a}, {view(in, {d, 1, b * d}), view(outer, {d, 1, 0})}, 1);
    plan.region(kernel, {a, d, b}, {view(in, {b * d, 1, d}), view(middle, {d, 1, 0})}, 1);
    plan.region(kernel, {a, b, d}, {view(in, {b * d, d, 1}), view(all, {0, 0, 0})}, 3);
    plan.region(kernel, {d, a, b}, {view(in, {1, b * d, d}), view(outer_two, {1, 0, 0})}, 2);
  }
  plan.region(kernel, {2, 3, 0}, {view(cases[0].in, {0, 0, 1}), view(none, {3, 1, 0})}, 1);  // the identity
  x.compare(title(combine, type), plan, allowed_of_reduction(combine, type, most));
}

void check_long_sums(Examination& x) {
  const auto kernel = reduce_kernel(Combine::sum, DType::f32);
  PlanCase plan(x.device());
  const std::int64_t n = 300001;
  const int in = plan.input(DType::f32, n, {0.5, 1.5});
  const int all = plan.output(DType::f32, 1);
  const int columns = plan.output(DType::f32, 33);
  plan.region(kernel, {n}, {view(in, {1}), view(all, {0})}, 1);
  plan.region(kernel, {33, n / 33}, {view(in, {1, 33}), view(columns, {1, 0})}, 1);
  x.compare("sum of float32, 300,001 terms", plan, {{2e-6, 0}, "16 ulp: partial sums are combined as trees"});
}

/// sum(exp(x - m) * w): operands broadcast along and across what is summed.
void check_expressions(Examination& x) {
  KernelBuilder b("sum(exp)");
  const auto value = b.load(DType::f32);
  const auto shift = b.load(DType::f32);
  const auto weight = b.load(DType::f32);
  const auto e = b.op(ScalarOp::exp, b.op(ScalarOp::sub, value, shift));
  const auto kernel = b.store(b.op(ScalarOp::mul, e, weight)).reduce(Combine::sum).finish();
  PlanCase plan(x.device());
  const std::int64_t m = 33;
  const std::int64_t n = 1025;
  const int in = plan.input(DType::f32, m * n);
  const int shifts = plan.input(DType::f32, m);
  const int weights = plan.input(DType::f32, n, {0.5, 1.5});
  const int rows = plan.output(DType::f32, m);
  const int columns = plan.output(DType::f32, n);
  plan.region(kernel, {m, n},
              {view(in, {n, 1}), view(shifts, {1, 0}), view(weights, {0, 1}), view(rows, {1, 0})}, 1);
  plan.region(kernel, {n, m},
              {view(in, {1, n}), view(shifts, {0, 1}), view(weights, {1, 0}), view(columns, {1, 0})}, 1);
  x.compare("sum of an expression", plan,
            {{x.gpu() ? 2e-5 : 2e-6, 0}, "exp within 3 + 2 |x| ulp (Vulkan), partial sums of f32"});
}

}  // namespace

void check_reductions(Examination& x) {
  for (DType type : kReducedTypes) {
    if (!x.supports(type)) {
      x.skip("reductions of " + std::string(name(type)), "the device lacks the type");
      continue;
    }
    for (const CombineFacts& c : kCombines) {
      if (accepts(c.combine, type)) check_reduced_layouts(x, c.combine, type);
    }
  }
  check_long_sums(x);
  check_expressions(x);
  if (!x.gpu() || x.backend().info().type != "software") return;  // GPUs have wide workgroups anyway
  x.on_other_backend("reductions in wide workgroups", "CALDERA_VULKAN_WIDE", "1", [](Examination& wide) {
    for (const CombineFacts& c : kCombines) {
      check_reduced_layouts(wide, c.combine, accepts(c.combine, DType::f32) ? DType::f32 : DType::i32);
    }
    check_long_sums(wide);
  });
}

}  // namespace caldera::doctor
