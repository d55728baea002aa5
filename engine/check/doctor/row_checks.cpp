// Kernels of rows: softmax, norms, several phases, joined in one dispatch; and, on software devices, the wide
// workgroups that GPUs get.
#include <string>

#include "engine/check/doctor/checks.h"
#include "engine/check/reference/kernel_builder.h"
#include "engine/check/reference/row_kernels.h"
#include "engine/check/reference/scalar_limits.h"
#include "engine/device/backend.h"

namespace caldera::doctor {
namespace {

using reference::floating;
using reference::integer;
using reference::KernelBuilder;
using reference::stored_as;
using reference::view;

constexpr const char* kRowSource = "exp within 3 + 2 |x| ulp (Vulkan), sums of positive f32 in parts of 512";

struct Extents {
  std::int64_t rows, length;
  std::int64_t count() const { return rows * length; }
};
constexpr Extents kExtents[] = {{1, 1},    {33, 7},    {3, 33},   {65, 33}, {7, 64},
                                {3, 1025}, {33, 1025}, {2, 5000}, {3, 0}};

std::int64_t all_elements() {
  std::int64_t n = 0;
  for (const Extents& e : kExtents) n += e.count();
  return n;
}

double tolerance(const Examination& x, std::int64_t length) {
  return reference::row_tolerance(x.device(), length).relative;
}

/// Which operands a row kernel has besides its one f32 (or f64) input, and what it stores for each row.
struct RowKernel {
  const char* name;
  std::shared_ptr<const Kernel> kernel;
  int values = 1;     // inputs of one element a point
  int weights = 0;    // inputs of one element a column
  int per_row = 0;    // outputs of one element a row, after those of one a point
  bool mean = false;  // scalars: 1 / length, epsilon
  Tolerance allowed;
};

/// All extents in one plan, dense and (where asked) transposed; rows of all steps are one after the other.
void add_row_steps(PlanCase& plan, const RowKernel& row, DType type, bool joined) {
  const std::int64_t elements = all_elements();
  std::int64_t rows = 0;
  for (const Extents& e : kExtents) rows += e.rows;
  std::vector<int> values, weights, points, each;
  for (int i = 0; i < row.values; ++i) values.push_back(plan.input(type, elements));
  for (int i = 0; i < row.weights; ++i) weights.push_back(plan.input(type, 5000));
  const int outputs = static_cast<int>(row.kernel->outputs.size());
  for (int i = 0; i < outputs - row.per_row; ++i) points.push_back(plan.output(type, 2 * elements));
  for (int i = 0; i < row.per_row; ++i) each.push_back(plan.output(type, 2 * rows));
  std::int64_t point = 0;
  std::int64_t line = 0;
  bool first = true;
  for (bool transposed : {false, true}) {
    for (const Extents& e : kExtents) {
      const std::int64_t from = transposed ? point - elements : point;
      std::vector<Operand> operands;
      operands.reserve(values.size() + weights.size() + points.size() + each.size());
      for (int b : values)
        operands.push_back(transposed ? view(b, {1, e.rows}, from) : view(b, {e.length, 1}, from));
      for (int b : weights) operands.push_back(view(b, {0, 1}));
      for (int b : points) operands.push_back(view(b, {e.length, 1}, point));
      for (int b : each) operands.push_back(view(b, {1, 0}, line));
      std::vector<std::int32_t> scalars;
      if (row.mean) {
        const double share = e.length > 0 ? 1 / static_cast<double>(e.length) : 1;
        const DType in = compute_type(type);
        scalars = {plan.scalar(in, floating(share)), plan.scalar(in, floating(1e-3))};
      }
      plan.region(row.kernel, {e.rows, e.length}, std::move(operands), 1).scalars = std::move(scalars);
      if (joined && !first) plan.join();
      first = false;
      point += e.count();
      line += e.rows;
    }
  }
}

/// y * (g - sum(y g)) with y = softmax(x): three reductions, each of which needs the one before.
std::shared_ptr<const Kernel> three_phases() {
  KernelBuilder b("softmax_and_gradient");
  const auto x = b.load(DType::f32);
  const auto g = b.load(DType::f32);
  const auto raised = b.op(ScalarOp::exp, b.op(ScalarOp::sub, x, b.op(ScalarOp::row_maximum, x)));
  const auto y = b.op(ScalarOp::div, raised, b.op(ScalarOp::row_sum, raised));
  const auto dot = b.op(ScalarOp::row_sum, b.op(ScalarOp::mul, y, g));
  return b.store(b.op(ScalarOp::mul, y, b.op(ScalarOp::sub, g, dot))).store(y).store(dot).finish();
}

/// Row reductions of one type, with load_row.
std::shared_ptr<const Kernel> extremes(DType type) {
  KernelBuilder b("extremes");
  const auto x = b.load(type);
  const auto most = b.op(ScalarOp::row_maximum, x);
  const auto least = b.op(ScalarOp::row_minimum, x);
  return b.store(b.op(ScalarOp::sub, most, x), type).store(most, type).store(least, type).finish();
}

std::vector<RowKernel> f32_kernels(const Examination& x) {
  const double t = tolerance(x, 5000);
  return {
      {"softmax", reference::softmax_kernel(DType::f32), 1, 0, 0, false, {t, 0}},
      {"log softmax", reference::log_softmax_kernel(), 1, 0, 0, false, {t, 1e-5}},
      {"layer norm", reference::layer_norm_kernel(), 1, 2, 0, true, {t, 1e-4}},
      {"RMS norm", reference::rms_norm_kernel(DType::f32), 1, 1, 1, true, {t, 0}},
      {"softmax with its gradient", three_phases(), 2, 0, 1, false, {t, 2e-5}},
      {"row extremes", extremes(DType::f32), 1, 0, 2, false, {}},
  };
}

void check_f32(Examination& x, bool joined) {
  for (const RowKernel& row : f32_kernels(x)) {
    PlanCase plan(x.device());
    add_row_steps(plan, row, DType::f32, joined);
    x.compare(std::string(row.name) + " of float32" + (joined ? ", joined dispatches" : ""), plan,
              {row.allowed, kRowSource});
  }
}

void check_other_types(Examination& x) {
  if (x.supports(DType::f64)) {
    PlanCase plan(x.device());
    add_row_steps(plan, {"", reference::rms_norm_kernel(DType::f64), 1, 1, 1, true, {}}, DType::f64, false);
    x.compare("RMS norm of float64", plan, {{1e-12, 0}, "sums of positive f64"});
  }
  for (DType type : {DType::f16, DType::bf16}) {
    if (!x.supports(type)) {
      x.skip("rows of " + std::string(name(type)), "the device lacks the type");
      continue;
    }
    const Allowed allowed = stored_as(type, {{tolerance(x, 5000), 0}, kRowSource});
    const RowKernel kernels[] = {{"softmax", reference::softmax_kernel(type), 1, 0, 0, false, {}},
                                 {"RMS norm", reference::rms_norm_kernel(type), 1, 1, 1, true, {}}};
    for (const RowKernel& row : kernels) {
      PlanCase plan(x.device());
      add_row_steps(plan, row, type, false);
      x.compare(std::string(row.name) + " of " + std::string(name(type)), plan, allowed);
    }
  }
  for (DType type : {DType::u8, DType::u32, DType::i8, DType::i16, DType::i32, DType::i64, DType::f64}) {
    if (!x.supports(type)) {
      x.skip("row extremes of " + std::string(name(type)), "the device lacks the type");
      continue;
    }
    PlanCase plan(x.device());
    add_row_steps(plan, {"", extremes(type), 1, 0, 2, false, {}}, type, false);
    x.compare("row extremes of " + std::string(name(type)), plan, {{}, "exact"});
  }
}

/// The place of the largest element: indices, selection, comparison with a value of the row, several types.
void check_places(Examination& x) {
  KernelBuilder b("argmax");
  const auto value = b.load(DType::f32);
  const auto none = b.scalar(DType::i32);
  const auto is_most = b.op(ScalarOp::equal, value, b.op(ScalarOp::row_maximum, value));
  const auto place = b.op(ScalarOp::row_maximum, b.op(ScalarOp::select, is_most, b.index(), none));
  const auto kernel = b.store(place).store(b.cast(is_most, DType::i32)).store(place, DType::f32).finish();
  PlanCase plan(x.device());
  const std::int64_t elements = all_elements();
  const int in = plan.input(DType::f32, elements, {-90, 90});
  const int places = plan.output(DType::i32, 200);
  const int flags = plan.output(DType::i32, elements);
  const int real = plan.output(DType::f32, 200);
  plan.scalar(DType::i32, integer(-1));
  std::int64_t point = 0;
  std::int64_t line = 0;
  for (const Extents& e : kExtents) {
    plan.region(kernel, {e.rows, e.length},
                {view(in, {e.length, 1}, point), view(-1, {0, 1}), view(places, {1, 0}, line),
                 view(flags, {e.length, 1}, point), view(real, {1, 0}, line)},
                1);
    point += e.count();
    line += e.rows;
  }
  x.compare("place of the largest element of rows", plan, {{}, "exact"});
}

}  // namespace

void check_rows(Examination& x) {
  check_f32(x, false);
  check_other_types(x);
  check_places(x);
  check_f32(x, true);
  if (!x.gpu()) return x.skip("rows in wide workgroups", "the CPU device has no workgroups");
  if (x.backend().info().type != "software")
    return x.skip("rows in wide workgroups: as an extra", "all workgroups of this device are wide");
  x.on_other_backend("rows in wide workgroups", "CALDERA_VULKAN_WIDE", "1",
                     [](Examination& wide) { check_f32(wide, false); });
}

}  // namespace caldera::doctor
