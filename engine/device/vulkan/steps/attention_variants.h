// The ways in which attention is computed, and which of them a device takes.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace caldera::vulkan {

/// Says how attention is computed: a row for each variant.
struct AttentionVariant {
  const char* name;    // that pins it: CALDERA_VULKAN_ATTENTION=<name>
  bool staged;         // matrices go through shared memory (attention_staged.glsl)
  bool cooperative;    // f16 goes through cooperative matrices; the rest as if staged
  bool small_code;     // short loops instead of unrolled ones, while the driver does not end them
  std::int64_t lanes;  // of a workgroup, and of one with no more than kFewRows rows; 0: a subgroup's
  std::int64_t few_lanes;
  std::int64_t columns;    // of a workgroup's lanes as a grid, where there are as many rows as it has
  std::int64_t tile_rows;  // of a block of scores that an invocation computes, at most
  std::int64_t slice;      // columns of two matrices that are staged at a time for products of their rows
  std::int64_t sums;       // that an invocation keeps of its outputs; and where there is little to compute
  std::int64_t few_sums;

  static constexpr std::int64_t kFewRows = 16;
};
std::span<const AttentionVariant> attention_variants();
/// The one that a device takes: that which is pinned, unless `pinned` is empty. Throws ValueError that lists
/// the names for one that there is not.
const AttentionVariant& attention_variant(bool few_cores, bool cooperative_matrices, std::string_view pinned);

}  // namespace caldera::vulkan
