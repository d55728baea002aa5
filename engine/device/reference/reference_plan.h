// An interpreter of plans, one element at a time in f64 and i64, written from the contracts in
// engine/plan/kernel/kernel.h and engine/plan/plan.h. It shares no code with any device. The steps run one
// after another, each as if alone, so barriers and joined dispatches mean nothing to it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/device/reference/scalar_reference.h"
#include "engine/plan/plan.h"

namespace caldera::reference {

/// What a plan runs on: the bytes of every buffer, each apart from the others (arena buffers too), and the
/// bits of the scalar arguments.
struct PlanMemory {
  std::vector<std::vector<std::byte>> buffers;
  std::vector<std::uint64_t> scalars;
};

void run_reference(const Plan& plan, PlanMemory& memory);

}  // namespace caldera::reference
