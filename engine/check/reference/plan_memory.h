// Defines the memory that the reference interpreter runs a plan on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace caldera::reference {

/// The bytes of every buffer, each apart from the others (arena buffers too), and the bits of the scalar
/// arguments.
struct PlanMemory {
  std::vector<std::vector<std::byte>> buffers;
  std::vector<std::uint64_t> scalars;
};

}  // namespace caldera::reference
