// Programs by name: what structure tests count, and what the plan verifier is tried on.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/caldera.h"

namespace caldera::testing {

struct NamedProgram {
  std::string_view name;
  std::function<std::vector<LazyTensor>(Device)> build;  // lazy outputs
};

const std::vector<NamedProgram>& named_programs();
/// Throws when there is none of that name.
const NamedProgram& named_program(std::string_view name);

/// A leaf of small, distinct, non-zero values.
LazyTensor program_input(const Shape& shape, Device device, float first = 0.25F);

}  // namespace caldera::testing
