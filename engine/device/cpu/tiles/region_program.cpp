#include "engine/device/cpu/tiles/region_program.h"

#include <algorithm>
#include <unordered_map>

#include "engine/device/cpu/tiles/tile_decoder.h"

namespace caldera::cpu {
namespace {

double cost_of(ScalarOp op, DType type) {
  double cost = 0.03;  // arithmetic that is bound by loads and stores in L1
  switch (op) {
    case ScalarOp::exp:
    case ScalarOp::exp2:
    case ScalarOp::expm1:
    case ScalarOp::sigmoid:
      cost = type == DType::f32 ? 0.13 : 6;
      break;
    case ScalarOp::tan:
    case ScalarOp::atan2:
    case ScalarOp::pow:
      cost = 10;
      break;
    case ScalarOp::floor_div:
    case ScalarOp::remainder:
      cost = 5;
      break;
    case ScalarOp::div:
    case ScalarOp::sqrt:
    case ScalarOp::rsqrt:
    case ScalarOp::reciprocal:
      cost = 0.12;
      break;
    case ScalarOp::philox_uniform:
      return 4;
    case ScalarOp::philox_normal:
      return 25;
    default:
      if (is_elementary(op)) cost = type == DType::f32 ? 0.3 : 6;
      break;
  }
  return size_of(type) == 8 ? 2 * cost : cost;
}

/// Rough time of one point on one thread, nanoseconds.
double point_cost(const Kernel& kernel) {
  double cost = 0;
  const RowPhases phases = row_phases(kernel);
  for (std::size_t v = 0; v < kernel.code.size(); ++v) {
    const Instruction& i = kernel.code[v];
    if (info(i.op).arity == 0 || (phases.per_row[v] && !is_row_reduction(i.op))) continue;
    cost += cost_of(i.op, kernel.code[i.op == ScalarOp::select ? i.b : i.a].type);
  }
  // Every operand crosses the memory bus once, at some 40 GB/s: L2 more, DRAM less.
  std::size_t moved = 0;
  for (DType t : kernel.inputs) moved += size_of(t);
  for (const auto& o : kernel.outputs) moved += size_of(o.type);
  return cost + 0.025 * static_cast<double>(moved);
}

}  // namespace

RegionProgram::RegionProgram(const Kernel& kernel)
    : TileProgram(decode(kernel, {.flat = !kernel.has_rows()})),
      used(kernel.inputs.size(), false),
      nanoseconds_per_element(point_cost(kernel)),
      kernel_(kernel) {
  for (const auto* list : {&row_inputs, &point_inputs})
    for (std::uint16_t i : *list) used[i] = true;
}

std::shared_ptr<const TileProgram> RegionProgram::decoded(const TileForm& form) const {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.form == form; });
  if (found != entries_.end()) return found->program;
  entries_.push_back({form, std::make_shared<const TileProgram>(decode(kernel_, form))});
  return entries_.back().program;
}

std::shared_ptr<const RegionProgram> decode_cached(const Kernel& kernel, std::uint64_t& compiled) {
  static std::mutex mutex;
  static std::unordered_map<Hash128, std::shared_ptr<const RegionProgram>> cache;
  const std::lock_guard lock(mutex);
  auto& entry = cache[kernel.hash];
  if (entry == nullptr) {
    entry = std::make_shared<const RegionProgram>(kernel);
    ++compiled;
  }
  return entry;
}

}  // namespace caldera::cpu
