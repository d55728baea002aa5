// The list of families of kernels for attention, and which of them a device takes.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "engine/device/vulkan/attention/families/attention_family.h"

namespace caldera::vulkan {

/// Lists all families. They live as long as the program.
const std::vector<const AttentionFamily*>& attention_families();

/// Finds the family that a device takes: that which is pinned, unless `pinned` is empty. Throws ValueError
/// that lists the names for one that there is not.
const AttentionFamily& attention_family(bool few_cores, const Capabilities& can, std::string_view pinned);

/// Shares a step among workgroups, by the family or, where the step is not for it, by the one that it names.
/// `exact_subgroup`: the size that every subgroup has; 0 where drivers may choose.
AttentionBlocking share_attention(const AttentionFamily& family, const AttentionProblem& problem,
                                  std::int64_t exact_subgroup);

}  // namespace caldera::vulkan
