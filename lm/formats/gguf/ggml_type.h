// The tensor types of GGUF files (ggml's ggml_type). Private to lm/formats/.
#pragma once

#include <cstdint>
#include <string_view>

namespace caldera::detail {

/// Holds what there is to know about a type of ggml's: how many values a block has, and its bytes.
struct GgmlType {
  std::uint32_t id = 0;
  std::string_view name;  ///< as ggml spells it: "Q4_K"
  std::uint32_t values = 1;
  std::uint32_t bytes = 0;
};

namespace ggml {
inline constexpr std::uint32_t kF32 = 0, kF16 = 1, kI8 = 24, kI16 = 25, kI32 = 26, kI64 = 27, kF64 = 28,
                               kBF16 = 30, kMXFP4 = 39;
}  // namespace ggml

/// The type of this number; null for one that ggml has not.
const GgmlType* find_ggml_type(std::uint32_t id);

}  // namespace caldera::detail
