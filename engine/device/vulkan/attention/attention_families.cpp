#include "engine/device/vulkan/attention/attention_families.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "engine/base/error.h"

// A line a family: families/NAME_family.cpp defines NAME_attention().
#define CALDERA_ATTENTION_FAMILIES(FAMILY) \
  FAMILY(direct)                           \
  FAMILY(staged)                           \
  FAMILY(cooperative)

namespace caldera::vulkan {

#define CALDERA_DECLARE(name) const AttentionFamily& name##_attention();
CALDERA_ATTENTION_FAMILIES(CALDERA_DECLARE)
#undef CALDERA_DECLARE

const std::vector<const AttentionFamily*>& attention_families() {
#define CALDERA_LIST(name) &name##_attention(),
  static const std::vector<const AttentionFamily*> kAll{CALDERA_ATTENTION_FAMILIES(CALDERA_LIST)};
#undef CALDERA_LIST
  return kAll;
}

namespace {

const AttentionFamily* find_attention(std::string_view name) {
  for (const AttentionFamily* family : attention_families())
    if (family->name() == name) return family;
  return nullptr;
}

}  // namespace

const AttentionFamily& attention_family(bool few_cores, const Capabilities& can, std::string_view pinned) {
  const std::vector<const AttentionFamily*>& all = attention_families();
  if (pinned.empty()) {
    const auto merit = [&](const AttentionFamily* family) {
      return family->why_not(can).empty() ? family->merit(few_cores) : -1;
    };
    return **std::ranges::max_element(all, {}, merit);
  }
  if (const AttentionFamily* found = find_attention(pinned)) return *found;
  std::string names;
  for (const AttentionFamily* family : all)
    names += (names.empty() ? "" : ", ") + std::string(family->name());
  throw ValueError(fmt::format("CALDERA_VULKAN_ATTENTION={}: there are {}", pinned, names));
}

AttentionBlocking share_attention(const AttentionFamily& family, const AttentionProblem& problem,
                                  std::int64_t exact_subgroup) {
  const AttentionFamily* taken = &family;
  std::optional<AttentionBlocking> shared = family.blocking(problem);
  while (!shared) {
    taken = find_attention(taken->otherwise());
    if (taken == nullptr)
      throw Error(fmt::format("attention: no family computes what {} does not", family.name()));
    shared = taken->blocking(problem);
  }
  AttentionBlocking b = *shared;
  b.family = taken;
  b.one_subgroup = exact_subgroup > 0 && b.lanes() == exact_subgroup;
  b.tasks = (problem.rows() + b.rows() - 1) / b.rows() * problem.space.batches();
  b.groups = static_cast<std::uint32_t>(std::min<std::int64_t>(b.tasks, problem.can.max_groups));
  const std::int64_t tasks_each = b.groups == 0 ? 0 : (b.tasks + b.groups - 1) / b.groups;

  // Short loops as long as the driver does not end them, then fewer and larger turns.
  const auto too_many = [&] {
    b.iterations = taken->iterations(b, problem, tasks_each);
    return problem.can.loop_limit > 0 && b.iterations > problem.can.loop_limit;
  };
  if (too_many()) b.small_code = false;
  while (taken->may_widen() && too_many() && b.tile_columns < 16) {
    b.tile_columns *= 2;
    if (taken->shared_bytes(b, problem.attention) <= problem.can.shared_memory) continue;
    b.tile_columns /= 2;
    break;
  }
  return b;
}

}  // namespace caldera::vulkan
