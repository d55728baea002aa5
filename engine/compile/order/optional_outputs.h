// Optional outputs: values that a plan stores anyway, and somebody wants to have.
#pragma once

#include <cstdint>
#include <span>

#include "engine/plan/plan.h"

namespace caldera {

/// Makes outputs, behind the others, of the stored values among `wanted` (nodes of the graph, ascending): the
/// steps that write their arena buffers write memory of the caller's instead. No step is added, left out or
/// changed in any other way. Before memory is planned.
void add_optional_outputs(Plan& plan, std::span<const std::uint32_t> wanted);

}  // namespace caldera
