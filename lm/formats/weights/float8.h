// Floats of 8 bits (OCP OFP8), as values. Private to lm/formats/.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lm/formats/safetensors/safetensors.h"

namespace caldera::detail {

/// The values of bytes of type F8_E4M3 (no infinities), F8_E5M2 (as an f16's high byte) or F8_E8M0 (powers of
/// two). Exact.
std::vector<float> float8_values(std::span<const std::byte> bytes, ForeignType type);

inline bool is_float8(ForeignType type) {
  return type == ForeignType::f8_e4m3 || type == ForeignType::f8_e5m2 || type == ForeignType::f8_e8m0;
}

}  // namespace caldera::detail
