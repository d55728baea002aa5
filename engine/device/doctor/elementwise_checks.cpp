// Every function of one element in every type, over dense, transposed, reversed, broadcast, offset and empty
// operands. Functions that share a domain share a kernel, each with an output of its own.
#include <algorithm>
#include <array>
#include <string>

#include "engine/device/doctor/families.h"
#include "engine/device/reference/kernel_builder.h"

namespace caldera::doctor {
namespace {

using reference::KernelBuilder;
using reference::Range;
using reference::view;

constexpr DType kTypes[] = {DType::boolean, DType::u8, DType::i32, DType::i64, DType::f32, DType::f64};
constexpr std::size_t kMostOutputs = 6;

constexpr const char* kExact = "the reference rounded once: one correctly rounded operation";
constexpr const char* kCpuFunction = "2 ulp: the polynomials of the CPU device";
constexpr const char* kGpuExp = "Vulkan, precision of exp (3 + 2 |x| ulp) and log (3 ulp, 2^-21 near 1)";
constexpr const char* kGpuSin = "sin, cos and pow in software, from Vulkan's mul, div, exp and log";
constexpr const char* kGpuDivision = "Vulkan, precision of division (2.5 ulp), sqrt and rsqrt (2 ulp)";
constexpr const char* kWide = "software functions of f64 on GPUs";

/// Of a function; the reference is the f64 result rounded to the type.
Allowed allowed_of(ScalarOp op, DType type, bool gpu) {
  if (!is_floating(type)) return {{}, kExact};
  const double ulp = type == DType::f64 ? 2.3e-16 : 1.2e-7;
  const Allowed wide{{1e-12, 1e-13}, kWide};
  switch (op) {
    case ScalarOp::exp:
    case ScalarOp::expm1:
    case ScalarOp::log:
    case ScalarOp::log1p:
    case ScalarOp::tanh:
    case ScalarOp::sigmoid:
    case ScalarOp::erf:
      if (!gpu) return {{2.2 * ulp, 0}, kCpuFunction};
      return type == DType::f64 ? wide : Allowed{{1e-5, 1e-6}, kGpuExp};
    case ScalarOp::sin:
    case ScalarOp::cos:
    case ScalarOp::tan:
    case ScalarOp::atan2:
    case ScalarOp::pow:
      if (!gpu) return {{2.2 * ulp, 0}, kCpuFunction};
      return type == DType::f64 ? wide : Allowed{{1e-4, 1e-4}, kGpuSin};
    case ScalarOp::rsqrt:
      if (!gpu) return {{2 * ulp, 0}, kCpuFunction};
      return type == DType::f64 ? wide : Allowed{{1e-6, 0}, kGpuDivision};
    case ScalarOp::div:
    case ScalarOp::sqrt:
    case ScalarOp::reciprocal:
    case ScalarOp::remainder:
    case ScalarOp::floor_div:
      if (!gpu) return {{type == DType::f64 ? ulp : 0, 0}, kExact};
      return type == DType::f64 ? wide : Allowed{{1e-6, 1e-6}, kGpuDivision};
    default:
      return {{}, kExact};
  }
}

bool accepts(ScalarOp op, DType type) {
  if (op == ScalarOp::round_f16 || op == ScalarOp::round_bf16) return type == DType::f32;
  switch (info(op).domain) {
    case ScalarDomain::any:
      return true;
    case ScalarDomain::numeric:
      return type != DType::boolean;
    case ScalarDomain::floating:
      return is_floating(type);
    case ScalarDomain::boolean:
      return type == DType::boolean;
  }
  return false;
}

Range domain_of(ScalarOp op) {
  switch (op) {
    case ScalarOp::log:
    case ScalarOp::sqrt:
    case ScalarOp::rsqrt:
      return {1e-3, 50};
    case ScalarOp::log1p:
      return {-0.99, 20};
    case ScalarOp::pow:
      return {0.1, 4};
    case ScalarOp::exp:
    case ScalarOp::expm1:
      return {-20, 20};
    case ScalarOp::sin:
    case ScalarOp::cos:
      return {-600, 600};
    default:
      return {-4, 4};
  }
}

bool same(Range a, Range b) { return a.low == b.low && a.high == b.high; }

/// Steps that read up to three operands of `kernel` and store all of its outputs, each step behind the last.
class Shapes {
 public:
  explicit Shapes(std::shared_ptr<const Kernel> kernel) : kernel_(std::move(kernel)) {}

  void add_to(PlanCase& plan, Range range) {
    for (DType type : kernel_->inputs) buffers_.push_back(plan.input(type, kElements, range));
    for (const auto& output : kernel_->outputs) buffers_.push_back(plan.output(output.type, kStored));
    for (std::int64_t n : {1, 7, 33, 1025}) step(plan, {n}, {{{1}, {1}, {1}}}, {2, 0, 1}, {1});
    const std::int64_t m = 33;
    const std::int64_t n = 65;
    step(plan, {m, n}, {{{1, m}, {n, -1}, {n, 1}}}, {3, n - 1, 0}, {n, 1});  // transposed, reversed
    step(plan, {m, 7}, {{{0, 1}, {1, 0}, {0, 0}}}, {5, 0, 1}, {1, m});       // broadcast; stored transposed
    step(plan, {0, 5}, {{{5, 1}, {5, 1}, {5, 1}}}, {0, 0, 0}, {5, 1});
  }

 private:
  static constexpr std::int64_t kElements = 33 * 65 + 8;
  static constexpr std::int64_t kStored = 1 + 7 + 33 + 1025 + 33 * 65 + 33 * 7;

  void step(PlanCase& plan, const Shape& dims, const std::array<Dims, 3>& strides,
            const std::array<std::int64_t, 3>& offsets, const Dims& stored) {
    std::vector<Operand> operands;
    operands.reserve(buffers_.size());
    for (std::size_t k = 0; k < buffers_.size(); ++k) {
      Operand operand;
      operand.buffer = buffers_[k];
      const bool input = k < kernel_->inputs.size();
      operand.strides = input ? strides.at(k) : stored;
      operand.offset = input ? offsets.at(k) : place_;
      operands.push_back(operand);
    }
    plan.region(kernel_, dims, std::move(operands));
    place_ += dims.numel();
  }

  std::shared_ptr<const Kernel> kernel_;
  std::vector<int> buffers_;
  std::int64_t place_ = 0;
};

void check_group(Examination& x, DType type, const std::vector<ScalarOp>& group) {
  KernelBuilder b("functions");
  const auto left = b.load(type);
  const bool binary = std::any_of(group.begin(), group.end(), [](ScalarOp op) { return info(op).arity > 1; });
  const auto right = binary ? b.load(type) : left;
  const bool selects = std::find(group.begin(), group.end(), ScalarOp::select) != group.end();
  const auto condition = selects ? b.load(DType::boolean) : left;
  std::vector<Examination::Named> outputs;
  outputs.reserve(group.size());
  for (ScalarOp op : group) {
    const bool select = op == ScalarOp::select;
    b.store(select ? b.op(op, condition, left, right) : b.op(op, left, right));
    outputs.push_back(
        {std::string(info(op).name) + " of " + std::string(name(type)), allowed_of(op, type, x.gpu())});
  }
  PlanCase plan(x.device(), static_cast<std::uint32_t>(group.front()) + 1);
  Shapes(b.finish()).add_to(plan, domain_of(group.front()));
  x.compare_each(plan, outputs);
}

void check_cast_group(Examination& x, DType from, const std::vector<DType>& to, Range range) {
  KernelBuilder b("casts");
  const auto value = b.load(from);
  std::vector<Examination::Named> outputs;
  outputs.reserve(to.size());
  for (DType type : to) {
    b.store(b.cast(value, type));
    outputs.push_back({std::string(name(from)) + " to " + std::string(name(type)), {{}, kExact}});
  }
  PlanCase plan(x.device(), 5);
  Shapes(b.finish()).add_to(plan, range);
  x.compare_each(plan, outputs);
}

}  // namespace

void check_elementwise(Examination& x) {
  for (DType type : kTypes) {
    if (!x.supports(type)) {
      x.skip("functions of " + std::string(name(type)), "the device lacks the type");
      continue;
    }
    std::vector<ScalarOp> left;
    for (int o = static_cast<int>(ScalarOp::neg); o <= static_cast<int>(ScalarOp::select); ++o) {
      const auto op = static_cast<ScalarOp>(o);
      if (op != ScalarOp::cast && accepts(op, type)) left.push_back(op);
    }
    while (!left.empty()) {
      std::vector<ScalarOp> group;
      const Range range = domain_of(left.front());
      std::vector<ScalarOp> rest;
      for (ScalarOp op : left) {
        const bool joins = group.size() < kMostOutputs && (!is_floating(type) || same(domain_of(op), range));
        (joins ? group : rest).push_back(op);
      }
      check_group(x, type, group);
      left = std::move(rest);
    }
  }
}

void check_casts(Examination& x) {
  const std::vector<DType> types = x.supported(kTypes);
  for (DType from : types) {
    if (!is_floating(from)) {
      check_cast_group(x, from, types, {});
      continue;
    }
    // Outside of the target's range GPUs do as the driver likes; special values are a family of their own.
    std::vector<DType> wide;
    for (DType to : types)
      if (to != DType::u8) wide.push_back(to);
    check_cast_group(x, from, wide, {-300, 300});
    if (x.supports(DType::u8)) check_cast_group(x, from, {DType::u8}, {0.25, 255});
  }
}

}  // namespace caldera::doctor
