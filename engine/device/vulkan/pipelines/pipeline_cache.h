// Pipelines of one device, made once and shared by all plans.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/device/vulkan/open/device.h"
#include "engine/device/vulkan/pipelines/disk_cache.h"
#include "engine/device/vulkan/pipelines/pipeline_file.h"
#include "engine/tensor/hash.h"

namespace caldera::vulkan {

/// Any thread; pipelines are made one at a time. One that cannot be made throws DeviceError naming the
/// kernel, and may be asked for again. They live as long as the cache.
class PipelineCache {
 public:
  PipelineCache(DevicePtr device, DiskCache disk);
  ~PipelineCache();
  PipelineCache(const PipelineCache&) = delete;
  PipelineCache& operator=(const PipelineCache&) = delete;

  /// The pipeline of a generated shader, its specialisation constants 0, 1, … set to `constants`. `text` is
  /// called when it is not in memory. `full_subgroups`: every subgroup has the device's subgroup size (where
  /// Capabilities::subgroup_size_control).
  VkPipeline generated(const Hash128& key, const std::string& name, bool full_subgroups,
                       const std::function<std::string()>& text,
                       std::span<const std::int32_t> constants = {});
  /// The pipeline of a hand-written shader (see embedded_shaders.h). Throws DeviceError when there is no such
  /// shader.
  VkPipeline embedded(std::string_view name, std::span<const std::int32_t> constants = {},
                      bool full_subgroups = false);

  /// One push constant: the address of the argument block.
  VkPipelineLayout layout() const { return layout_; }
  /// Writes what the driver made of the pipelines to disk, if there are new ones and it can. The destructor
  /// does so too.
  void save() noexcept;
  std::uint64_t compiled() const { return compiled_.load(std::memory_order_relaxed); }

 private:
  void store();
  VkPipeline make(std::span<const std::uint32_t> words, std::string_view name, bool full_subgroups,
                  std::span<const std::int32_t> constants);

  DevicePtr device_;
  DiskCache disk_;
  PipelineFile file_;
  VkPipelineCache cache_ = VK_NULL_HANDLE;  // none: the driver refused
  std::uint64_t saved_ = 0;                 // of compiled_
  std::mutex mutex_;
  VkPipelineLayout layout_ = VK_NULL_HANDLE;
  std::unordered_map<Hash128, VkPipeline> pipelines_;
  std::atomic<std::uint64_t> compiled_{0};
};

}  // namespace caldera::vulkan
