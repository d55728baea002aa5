#include "engine/device/cpu/tiles/region_program.h"

#include <algorithm>
#include <unordered_map>

#include "engine/device/cpu/tiles/region_cost.h"
#include "engine/device/cpu/tiles/tile_decoder.h"

namespace caldera::cpu {
RegionProgram::RegionProgram(const Kernel& kernel)
    : TileProgram(decode(kernel, {.flat = !kernel.has_rows()})),
      used(kernel.inputs.size(), false),
      nanoseconds_per_element(region_nanoseconds(kernel)),
      kernel_(kernel) {
  for (const auto* list : {&row_inputs, &point_inputs})
    for (std::uint16_t i : *list) used[i] = true;
}

std::shared_ptr<const TileProgram> RegionProgram::decoded(const TileForm& form) const {
  const std::lock_guard lock(mutex_);
  const auto found =
      std::find_if(entries_.begin(), entries_.end(), [&](const Entry& e) { return e.form == form; });
  if (found != entries_.end()) return found->program;
  entries_.push_back({form, std::make_shared<const TileProgram>(decode(kernel_, form))});
  return entries_.back().program;
}

std::shared_ptr<const RegionProgram> decode_cached(const Kernel& kernel, std::uint64_t& compiled) {
  static std::mutex mutex;
  static std::unordered_map<Hash128, std::shared_ptr<const RegionProgram>> cache;
  const std::lock_guard lock(mutex);
  auto& entry = cache[kernel.hash];
  if (entry == nullptr) {
    entry = std::make_shared<const RegionProgram>(kernel);
    ++compiled;
  }
  return entry;
}

}  // namespace caldera::cpu
