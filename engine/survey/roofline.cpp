#include "engine/survey/roofline.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace caldera {
namespace {

constexpr double kLatency = 600e-9;    // of a load from memory
constexpr double kBytesUnderWay = 16;  // an invocation

/// How a dispatch fills the card.
struct Fill {
  double resident = 0;   // invocations, on the whole card
  double subgroups = 0;  // of the whole dispatch
  double busy = 1;       // share of the schedulers
  double busy_units = 1;
  double at_once = 1;  // workgroups of a unit
};

Fill fill_of(const Card& card, const KernelReport& kernel, const DispatchFacts& dispatch) {
  const double lanes = kernel.workgroup_size > 0 ? static_cast<double>(kernel.workgroup_size) : 64;
  const double width = kernel.subgroup_size > 0 ? static_cast<double>(kernel.subgroup_size) : 32;
  const double most =
      std::min(kernel.statistics.resident_invocations.value_or(static_cast<double>(card.resident)),
               static_cast<double>(card.resident));
  const auto units = static_cast<double>(card.units);
  const auto groups = static_cast<double>(dispatch.workgroups);
  const double groups_of_unit = std::ceil(groups / units);
  const double subgroups = std::ceil(lanes / width);
  Fill fill;
  const double at_once = std::min(std::max(1.0, std::floor(most / lanes)), groups_of_unit);
  fill.at_once = at_once;
  fill.resident = std::min(groups, units * at_once) * lanes;
  fill.subgroups = groups * subgroups;
  fill.busy_units = groups / (units * groups_of_unit);
  fill.busy = fill.busy_units * std::min(1.0, at_once * subgroups / static_cast<double>(card.schedulers));
  return fill;
}

/// What the whole dispatch executes, by subgroup.
CodeStretch executed(const KernelReport& kernel, const DispatchFacts& dispatch, const Fill& fill) {
  CodeStretch all;
  if (!kernel.code) return all;
  const CodeFacts& code = *kernel.code;
  const auto lanes = static_cast<double>(std::max<std::int64_t>(kernel.subgroup_size, 1));
  const bool is_product = kernel.family == "product" || kernel.family.starts_with("attention");
  if (is_product && code.product) {
    const double flops =
        code.product->matrix_flops > 0 ? code.product->matrix_flops : code.product->f32_flops * lanes;
    all.add(*code.product, static_cast<double>(dispatch.flops) / flops);
  } else if (dispatch.turns > 0) {
    const auto rounds = static_cast<double>(std::max<std::int64_t>(dispatch.rounds, 1));
    all.add(code.whole, fill.subgroups * rounds);
    all.add(code.walks, fill.subgroups * rounds * static_cast<double>(dispatch.turns - 1));
  } else {
    all.add(code.whole, fill.subgroups);
    all.add(code.turn,
            fill.subgroups * static_cast<double>(std::max<std::int64_t>(dispatch.iterations - 2, 0)));
  }
  all.shared_bytes *= lanes;
  return all;
}

}  // namespace

double TimeEstimate::seconds() const {
  const double computing = std::max(arithmetic, issue);
  const double longest = std::max({memory, computing, shared});
  return longest + (memory + computing + shared - longest) / workgroups + fixed;
}

std::string_view TimeEstimate::bound() const {
  struct Bound {
    double seconds;
    std::string_view name;
  };
  const std::array<Bound, 5> all{{{memory, "memory"},
                                  {arithmetic, "arithmetic"},
                                  {issue, "issue"},
                                  {shared, "shared"},
                                  {fixed, "fixed"}}};
  return std::ranges::max_element(all, {}, &Bound::seconds)->name;
}

TimeEstimate estimate_time(const Card& card, const KernelReport& kernel, const DispatchFacts& dispatch) {
  TimeEstimate r;
  r.fixed = kDispatchSeconds + (dispatch.barrier_before ? kBarrierSeconds : 0);
  if (dispatch.workgroups < 1) return r;
  const Fill fill = fill_of(card, kernel, dispatch);
  r.workgroups = fill.at_once;
  const double share = std::min(1.0, fill.resident * kBytesUnderWay / (card.bandwidth * kLatency));
  r.memory = static_cast<double>(dispatch.bytes) / (card.bandwidth * share);
  const double rate = kernel.uses_matrices ? card.matrix_flops : card.f32_flops;
  r.arithmetic = static_cast<double>(dispatch.flops) / (rate * fill.busy);
  const CodeStretch run = executed(kernel, dispatch, fill);
  const auto units = static_cast<double>(card.units);
  r.issue = run.issued / (units * static_cast<double>(card.schedulers) * card.clock * fill.busy);
  if (card.matrices_block) r.issue += run.matrix_flops / (card.matrix_flops * fill.busy);
  r.shared = run.shared_bytes / (units * card.shared_per_cycle * card.clock * fill.busy_units);
  return r;
}

}  // namespace caldera
