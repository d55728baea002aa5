// Pipelines of one device, made once and shared by all plans.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/hash.h"
#include "engine/device/recent_cache.h"
#include "engine/device/vulkan/open/device.h"
#include "engine/device/vulkan/pipelines/disk_cache.h"
#include "engine/device/vulkan/pipelines/pipeline.h"
#include "engine/device/vulkan/pipelines/pipeline_file.h"
#include "engine/device/vulkan/spirv/facts.h"

namespace caldera::vulkan {

/// Any thread. A pipeline is made once for all that ask for it, and asking does not wait for any other. One
/// that cannot be made throws DeviceError naming the kernel from Pipeline::handle, and may be asked for
/// again. What was used longest ago goes first (CacheKind::pipelines); who holds a pipeline keeps it.
class PipelineCache {
 public:
  PipelineCache(DevicePtr device, DiskCache disk);
  ~PipelineCache();
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;

  /// The pipeline of a generated shader, its specialisation constants 0, 1, … set to `constants`, not yet
  /// made if it is new. `text` is called then. `full_subgroups`: every subgroup has the device's subgroup
  /// size (where Capabilities::subgroup_size_control).
  PipelinePtr generated(const Hash128& key, const std::string& name, bool full_subgroups,
                        const std::function<std::string()>& text,
                        std::span<const std::int32_t> constants = {});
  /// The pipeline of a hand-written shader (see embedded_shaders.h). Throws DeviceError when there is no such
  /// shader.
  PipelinePtr embedded(std::string_view name, std::span<const std::int32_t> constants = {},
                       bool full_subgroups = false);
  /// Makes the pipelines, side by side.
  void make(const std::vector<PipelinePtr>& pipelines);

  /// Returns what the module of a pipeline says of it, where the device was opened for a survey; else
  /// nothing.
  spirv::ModuleFacts facts(VkPipeline pipeline) const;

  /// Returns the layout of KernelPush.
  VkPipelineLayout layout() const { return layout_; }
  /// Writes what the driver made of the pipelines to disk, if there are new ones and it can. The destructor
  /// does so too.
  void save() noexcept;
  std::uint64_t compiled() const { return compiled_.load(std::memory_order_relaxed); }
  CacheStats stats() const { return pipelines_.stats(); }
  void set_limit(std::uint64_t bytes) { pipelines_.set_limit(bytes); }
  const DiskCache& disk() const { return disk_; }

 private:
  using Words = std::span<const std::uint32_t>;
  PipelinePtr find(const Hash128& key, const std::function<PipelinePtr()>& how);
  void store();
  VkPipeline make(Words shader, std::string_view name, bool full_subgroups,
                  std::span<const std::int32_t> constants);
  VkResult create(const VkComputePipelineCreateInfo& info, std::size_t code_bytes, VkPipeline& pipeline);
  std::vector<std::uint32_t> words_of(const std::string& source, const std::string& name);
  void open_driver_cache(std::span<const std::byte> known);

  DevicePtr device_;
  DiskCache disk_;
  PipelineFile file_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;     // none: the driver refused
  std::atomic<std::uint64_t> cache_bytes_{0};  // that the driver keeps in it, about
  std::uint64_t saved_ = 0;                    // of compiled_
  std::shared_mutex mutex_;                    // of the driver's cache: shared by those who use it
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  RecentCache<Pipeline> pipelines_;
  std::atomic<std::uint64_t> compiled_{0};
  mutable std::mutex facts_mutex_;
  std::map<VkPipeline, spirv::ModuleFacts> facts_;
};

}  // namespace caldera::vulkan
