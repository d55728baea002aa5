#include "engine/check/stepwise/deviation.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

#include "engine/check/reference/reference_plan.h"
#include "engine/check/stepwise/left_out_parts.h"

namespace caldera::check {
namespace {

using reference::Number;
using reference::PlanMemory;

constexpr double kInfinite = std::numeric_limits<double>::infinity();
/// Roundings in a row that go the same way: far more than sums in blocks have, far fewer than a wrong step.
constexpr double kRoundings = 128;
/// The runs with moved operands. A single one may leave an element where it is by chance.
constexpr int kMovedRuns = 2;

/// The relative error of one rounding to the type.
double rounding(DType type) {
  switch (type) {
    case DType::f64:
      return 0x1p-53;
    case DType::bf16:
      return 0x1p-9;
    case DType::f16:
      return 0x1p-12;
    default:
      return 0x1p-24;
  }
}

/// The largest rounding on the way to the plan's results: of what is stored and of what kernels round to.
double coarsest_rounding(const Plan& plan) {
  double coarsest = rounding(DType::f64);
  const auto see = [&](DType type) {
    if (is_floating(type)) coarsest = std::max(coarsest, rounding(type));
  };
  for (const Step& step : plan.steps) {
    see(step.dtype);
    for (std::size_t k = step.first_output(); k < step.operands.size(); ++k)
      see(plan.buffers[static_cast<std::size_t>(step.operands[k].buffer)].dtype);
    for (const StepKernel& used : step.kernels()) {
      for (const Instruction& i : used.kernel->code) {
        see(i.type);
        if (i.op == ScalarOp::round_f16) see(DType::f16);
        if (i.op == ScalarOp::round_bf16) see(DType::bf16);
      }
    }
  }
  return coarsest;
}

/// A relative distance that moves every number of the operands' types.
double distance_to_move(const Plan& plan) {
  double distance = 0x1p-30;
  for (std::int32_t b = 0; b < plan.input_count + plan.output_count; ++b) {
    const DType type = plan.buffers[static_cast<std::size_t>(b)].dtype;
    if (is_floating(type) && type != DType::f64) distance = std::max(distance, 4 * rounding(type));
  }
  return distance;
}

void move_operands(const Plan& plan, double distance, std::mt19937& random, PlanMemory& memory) {
  for (std::size_t b = 0; b < memory.buffers.size(); ++b) {
    const DType type = plan.buffers[b].dtype;
    if (!is_floating(type)) continue;
    const auto elements = static_cast<std::int64_t>(memory.buffers[b].size() / size_of(type));
    for (std::int64_t i = 0; i < elements; ++i) {
      const double value = reference::read_number(memory.buffers[b], type, i).f;
      const double moved = value * ((random() & 1) != 0 ? 1 + distance : 1 - distance);
      if (std::isfinite(value))
        reference::write_number(memory.buffers[b], type, i,
                                reference::rounded(type, reference::floating(moved)));
    }
  }
}

/// The last step that writes each buffer.
std::vector<std::optional<std::size_t>> writers(const Plan& plan) {
  std::vector<std::optional<std::size_t>> last(plan.buffers.size());
  for (std::size_t i = 0; i < plan.steps.size(); ++i) {
    const Step& step = plan.steps[i];
    for (std::size_t k = step.first_output(); k < step.operands.size(); ++k)
      last[static_cast<std::size_t>(step.operands[k].buffer)] = i;
  }
  return last;
}

/// The results of the interpreter, with and without moved operands.
class Expected {
 public:
  Expected(const Plan& plan, const PlanMemory& before, const std::vector<std::vector<std::byte>>& got)
      : plan_(plan), exact_(before), rounding_(coarsest_rounding(plan)), distance_(distance_to_move(plan)) {
    reference::run_reference(plan, exact_);
    std::mt19937 random(1);
    for (int run = 0; run < kMovedRuns; ++run) {
      moved_.push_back(before);
      move_operands(plan, distance_, random, moved_.back());
      reference::run_reference(plan, moved_.back());
    }
    for (const Step& step : plan.steps) {
      accept_left_out_parts(plan, step, got, exact_);
      for (PlanMemory& moved : moved_) accept_left_out_parts(plan, step, got, moved);
    }
  }

  std::optional<Deviation> deviation(std::size_t step, std::size_t buffer,
                                     const std::vector<std::byte>& got) const {
    const DType type = plan_.buffers[buffer].dtype;
    const auto elements = static_cast<std::int64_t>(got.size() / size_of(type));
    const double largest = largest_of(buffer, type, elements);
    Deviation found{.step = step, .buffer = buffer, .got = {}, .want = {}};
    double worst = 0;
    for (std::int64_t i = 0; i < elements; ++i) {
      const Number is = reference::read_number(got, type, i);
      const Number want = reference::read_number(exact_.buffers[buffer], type, i);
      const double bound = is_floating(type) ? bound_of(buffer, type, i, want, largest) : 0;
      const double beyond = reference::difference(type, is, want);
      if (!(beyond > bound) || (!is_floating(type) && is_undecided(buffer, type, i, want))) continue;
      found.count += 1;
      const double ratio = bound > 0 ? beyond / bound : kInfinite;
      if (ratio <= worst) continue;
      worst = ratio;
      found.element = i;
      found.got = is;
      found.want = want;
      found.bound = bound;
    }
    if (found.count == 0) return std::nullopt;
    return found;
  }

 private:
  double largest_of(std::size_t buffer, DType type, std::int64_t elements) const {
    double largest = 0;
    if (!is_floating(type)) return largest;
    for (std::int64_t i = 0; i < elements; ++i) {
      const double value = std::fabs(reference::read_number(exact_.buffers[buffer], type, i).f);
      if (std::isfinite(value)) largest = std::max(largest, value);
    }
    return largest;
  }

  double bound_of(std::size_t buffer, DType type, std::int64_t i, Number want, double largest) const {
    double moved_by = 0;
    for (const PlanMemory& moved : moved_)
      moved_by = std::max(moved_by, reference::difference(
                                        type, reference::read_number(moved.buffers[buffer], type, i), want));
    // Below the smallest normal number a device may have 0.
    constexpr double kFlushed = 0x1p-126;
    return 4 * rounding(type) * std::fabs(want.f) + kRoundings * rounding_ * (moved_by / distance_) +
           16 * rounding_ * largest + kFlushed;
  }

  bool is_undecided(std::size_t buffer, DType type, std::int64_t i, Number want) const {
    return std::any_of(moved_.begin(), moved_.end(), [&](const PlanMemory& moved) {
      return reference::read_number(moved.buffers[buffer], type, i).i != want.i;
    });
  }

  const Plan& plan_;
  PlanMemory exact_;
  std::vector<PlanMemory> moved_;
  double rounding_;
  double distance_;
};

}  // namespace

std::optional<Deviation> first_deviation(const Plan& plan, const PlanMemory& before,
                                         const std::vector<std::vector<std::byte>>& after,
                                         const std::vector<std::size_t>& failed) {
  const Expected expected(plan, before, after);
  const auto last = writers(plan);
  std::optional<Deviation> first;
  for (std::size_t b = 0; b < after.size(); ++b) {
    if (!last[b] || std::find(failed.begin(), failed.end(), *last[b]) != failed.end()) continue;
    const auto found = expected.deviation(*last[b], b, after[b]);
    if (found && (!first || found->step < first->step)) first = found;
  }
  return first;
}

std::optional<Difference> gross_difference(DType type, const std::vector<std::byte>& got,
                                           const std::vector<std::byte>& want, std::int64_t first,
                                           std::int64_t count) {
  double largest = 0;
  for (std::int64_t i = first; i < first + count; ++i) {
    const double size = std::abs(reference::read_number(want, type, i).f);
    if (std::isfinite(size)) largest = std::max(largest, size);
  }
  const double bound = is_floating(type) ? std::sqrt(rounding(type)) * largest : 0;
  for (std::int64_t i = first; i < first + count; ++i) {
    const Number a = reference::read_number(got, type, i), b = reference::read_number(want, type, i);
    if (reference::difference(type, a, b) > bound) return Difference{i - first, a, b};
  }
  return std::nullopt;
}

}  // namespace caldera::check
