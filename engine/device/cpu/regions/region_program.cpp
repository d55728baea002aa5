#include "engine/device/cpu/regions/region_program.h"

#include <algorithm>

#include "engine/device/cpu/regions/region_cost.h"
#include "engine/device/cpu/tiles/tile_decoder.h"
#include "engine/device/recent_cache.h"

namespace caldera::cpu {
namespace {

constexpr std::size_t kCacheEntry = 512;  // of the cache's own
constexpr std::uint64_t kDefaultLimit = std::uint64_t{32} << 20;

RecentCache<const RegionProgram>& cache() {
  static auto* cache = new RecentCache<const RegionProgram>(kDefaultLimit);  // outlives every static tensor
  return *cache;
}

template <class T>
std::size_t size_of_list(const std::vector<T>& list) {
  return list.capacity() * sizeof(T);
}

std::size_t heap_bytes(const Kernel& kernel) {
  return kernel.name.capacity() + size_of_list(kernel.inputs) + size_of_list(kernel.scalars) +
         size_of_list(kernel.code) + size_of_list(kernel.outputs);
}

std::size_t heap_bytes(const TileProgram& p) {
  std::size_t bytes = size_of_list(p.code) + size_of_list(p.reductions) + size_of_list(p.passes) +
                      size_of_list(p.outputs) + size_of_list(p.inputs) + size_of_list(p.scalars) +
                      size_of_list(p.indices) + p.expanded_scalars.size() / 8 + p.machine->bytes();
  for (const auto* list : {&p.row_inputs, &p.row_indices, &p.point_inputs, &p.point_indices})
    bytes += size_of_list(*list);
  for (const TileProgram::Pass& pass : p.passes)
    bytes += size_of_list(pass.inputs) + size_of_list(pass.indices);
  return bytes;
}

}  // namespace

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
  if (entries_.size() == kMostForms) entries_.erase(entries_.begin());
  entries_.push_back({form, std::make_shared<const TileProgram>(decode(kernel_, form))});
  return entries_.back().program;
}

std::size_t RegionProgram::bytes() const {
  std::size_t bytes = sizeof(RegionProgram) + heap_bytes(*this) + heap_bytes(kernel_) + used.size() / 8;
  const std::lock_guard lock(mutex_);
  for (const Entry& entry : entries_)
    bytes += sizeof(Entry) + sizeof(TileProgram) + heap_bytes(*entry.program);
  return kCacheEntry + bytes + bytes / 2;  // some thirty small blocks, each with a part that the heap takes
}

std::shared_ptr<const RegionProgram> decode_cached(const Kernel& kernel, std::uint64_t& compiled) {
  return cache().get(kernel.hash, [&] {
    auto made = std::make_shared<const RegionProgram>(kernel);
    ++compiled;
    return made;
  });
}

CacheStats decoded_stats() { return cache().stats(); }
void set_decoded_limit(std::uint64_t bytes) { cache().set_limit(bytes); }

}  // namespace caldera::cpu
