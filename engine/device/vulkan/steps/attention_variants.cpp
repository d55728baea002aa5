#include "engine/device/vulkan/steps/attention_variants.h"

#include <fmt/core.h>

#include <string>

#include "engine/base/error.h"

namespace caldera::vulkan {

std::span<const AttentionVariant> attention_variants() {
  // A GPU keeps sums in registers. A processor has them in its first cache, but it takes a second to compile
  // many of them, which small work does not win back; its wide workgroups are slow, and what is staged is
  // stored and loaded again.
  static constexpr AttentionVariant kVariants[] = {
      // name, staged, cooperative, small_code, lanes, few_lanes, columns, tile_rows, slice, sums, few_sums
      {"direct", false, false, true, 0, 0, 4, 8, 0, 128, 32},
      {"staged", true, false, false, 128, 64, 8, 4, 16, 64, 64},
      {"cooperative", true, true, false, 128, 64, 8, 4, 16, 64, 64},
  };
  return kVariants;
}

const AttentionVariant& attention_variant(bool few_cores, bool cooperative_matrices,
                                          std::string_view pinned) {
  const std::string_view wanted = !pinned.empty()        ? pinned
                                  : few_cores            ? "direct"
                                  : cooperative_matrices ? "cooperative"
                                                         : "staged";
  std::string names;
  for (const AttentionVariant& variant : attention_variants()) {
    if (wanted == variant.name) return variant;
    names += (names.empty() ? "" : ", ") + std::string(variant.name);
  }
  throw ValueError(fmt::format("CALDERA_VULKAN_ATTENTION={}: there are {}", wanted, names));
}

}  // namespace caldera::vulkan
