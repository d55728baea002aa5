// Every function of one element in every type, over dense, transposed, reversed, broadcast, offset and empty
// operands. Functions that share a domain share a kernel, each with an output of its own. Some of them also
// on operands of types of memory: computed in a wider type, rounded or wrapped as they are stored.
#include <algorithm>
#include <array>
#include <span>
#include <string>

#include "engine/check/doctor/checks.h"
#include "engine/check/reference/kernel_builder.h"
#include "engine/check/reference/scalar_limits.h"

namespace caldera::doctor {
namespace {

using reference::checked_range;
using reference::KernelBuilder;
using reference::Range;
using reference::scalar_allowed;
using reference::stored_as;
using reference::view;

constexpr DType kElementTypes[] = {DType::boolean, DType::u8, DType::i32, DType::i64, DType::f32, DType::f64};
constexpr DType kHalfTypes[] = {DType::f16, DType::bf16};
constexpr DType kNarrow[] = {DType::i8, DType::i16, DType::u32};
constexpr std::size_t kMostOutputs = 6;
/// None that leaps between neighbouring arguments, as floor_div does where a quotient is whole.
const std::vector<ScalarOp> kOfHalves{ScalarOp::neg,  ScalarOp::add,  ScalarOp::mul,
                                      ScalarOp::tanh, ScalarOp::less, ScalarOp::select};
const std::vector<ScalarOp> kOfNarrow{ScalarOp::neg,       ScalarOp::abs, ScalarOp::add,  ScalarOp::sub,
                                      ScalarOp::floor_div, ScalarOp::pow, ScalarOp::less, ScalarOp::select};

constexpr const char* kRoundedOnce = "the reference rounded once: one correctly rounded operation";

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

/// `type`: of the operands in memory, and of results that are no booleans.
void check_element_group(Examination& x, DType type, const std::vector<ScalarOp>& group) {
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
    const DType result = is_memory_type(type) && !info(op).gives_boolean ? type : value_type(op, type);
    b.store(select ? b.op(op, condition, left, right) : b.op(op, left, right), result);
    outputs.push_back({std::string(info(op).name) + " of " + std::string(name(type)),
                       stored_as(type, scalar_allowed(op, compute_type(type), x.device()))});
  }
  PlanCase plan(x.device(), static_cast<std::uint32_t>(group.front()) + 1);
  Shapes(b.finish()).add_to(plan, checked_range(group.front()));
  x.compare_each(plan, outputs);
}

void check_cast_group(Examination& x, DType from, const std::vector<DType>& to, Range range) {
  KernelBuilder b("casts");
  const auto value = b.load(from);
  std::vector<Examination::Named> outputs;
  outputs.reserve(to.size());
  for (DType type : to) {
    b.store(b.cast(value, type), type);
    outputs.push_back({std::string(name(from)) + " to " + std::string(name(type)), {{}, kRoundedOnce}});
  }
  PlanCase plan(x.device(), 5);
  Shapes(b.finish()).add_to(plan, range);
  x.compare_each(plan, outputs);
}

}  // namespace

void check_elementwise(Examination& x) {
  for (DType type : kElementTypes) {
    if (!x.supports(type)) {
      x.skip("functions of " + std::string(name(type)), "the device lacks the type");
      continue;
    }
    std::vector<ScalarOp> left;
    for (int o = static_cast<int>(ScalarOp::neg); o <= static_cast<int>(ScalarOp::select); ++o) {
      const auto op = static_cast<ScalarOp>(o);
      const auto memory = narrowed_to(op);
      if (op != ScalarOp::cast && accepts(op, type) && (!memory || x.supports(*memory))) left.push_back(op);
    }
    while (!left.empty()) {
      std::vector<ScalarOp> group;
      const Range range = checked_range(left.front());
      std::vector<ScalarOp> rest;
      for (ScalarOp op : left) {
        const bool joins =
            group.size() < kMostOutputs && (!is_floating(type) || same(checked_range(op), range));
        (joins ? group : rest).push_back(op);
      }
      check_element_group(x, type, group);
      left = std::move(rest);
    }
  }
  const auto check_memory_types = [&](std::span<const DType> types, const std::vector<ScalarOp>& group) {
    for (DType type : types) {
      if (x.supports(type))
        check_element_group(x, type, group);
      else
        x.skip("functions of " + std::string(name(type)), "the device lacks the type");
    }
  };
  check_memory_types(kHalfTypes, kOfHalves);
  check_memory_types(kNarrow, kOfNarrow);
}

void check_casts(Examination& x) {
  std::vector<DType> types = x.supported(kElementTypes);
  for (DType type : x.supported(kHalfTypes)) types.push_back(type);
  for (DType type : x.supported(kNarrow)) types.push_back(type);
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
