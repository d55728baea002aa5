// Keeps what the driver made of pipelines on disk: one file a device and driver, beside the shaders of
// DiskCache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "engine/device/vulkan/open/vk.h"

namespace caldera::vulkan {

/// The data of a VkPipelineCache. Drivers are not asked to survive damaged data, so all of it is checked
/// before they see it: a digest over the content, and that Vulkan's own header names this very device and
/// driver.
class PipelineFile {
 public:
  /// More is not kept.
  static constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;

  /// Empty `directory`: nothing is kept.
  PipelineFile(const std::filesystem::path& directory, VkPhysicalDevice device);

  /// Empty unless the file is whole and this device's.
  std::vector<std::byte> load() const;
  void store(std::span<const std::byte> data) const;
  /// Empty without a directory.
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  VkPhysicalDeviceProperties properties_{};
};

}  // namespace caldera::vulkan
