#include "engine/device/vulkan/pipelines/pipeline_file.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string>

#include "engine/base/hash.h"
#include "engine/device/vulkan/open/device_identity.h"
#include "engine/device/vulkan/pipelines/disk_cache.h"

namespace caldera::vulkan {
namespace {

constexpr std::uint64_t kPipelineMagic = 0x31504950'4c414343ULL;

struct PipelineHeader {
  std::uint64_t magic = kPipelineMagic;
  std::uint64_t bytes = 0;
  std::uint64_t content_lo = 0, content_hi = 0;
};

Hash128 hash_of_bytes(std::span<const std::byte> data) {
  Hash128 hash;
  hash.mix(std::string_view(reinterpret_cast<const char*>(data.data()), data.size()));
  return hash;
}

/// Vulkan's header at the start of the data.
bool belongs_to(std::span<const std::byte> data, const VkPhysicalDeviceProperties& device) {
  VkPipelineCacheHeaderVersionOne header;
  if (data.size() < sizeof header) return false;
  std::memcpy(&header, data.data(), sizeof header);
  return header.headerSize == sizeof header && header.headerVersion == VK_PIPELINE_CACHE_HEADER_VERSION_ONE &&
         header.vendorID == device.vendorID && header.deviceID == device.deviceID &&
         std::equal(std::begin(header.pipelineCacheUUID), std::end(header.pipelineCacheUUID),
                    std::begin(device.pipelineCacheUUID));
}

}  // namespace

PipelineFile::PipelineFile(const std::filesystem::path& directory, VkPhysicalDevice device) {
  vkGetPhysicalDeviceProperties(device, &properties_);
  if (!directory.empty()) path_ = directory / ("pipelines-" + device_identity(device) + ".bin");
}

std::vector<std::byte> PipelineFile::load() const {
  if (path_.empty()) return {};
  std::ifstream file(path_, std::ios::binary);
  PipelineHeader header;
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return {};
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path_, error);
  if (error || header.magic != kPipelineMagic || header.bytes > kMostBytes ||
      size != sizeof header + header.bytes)
    return {};
  std::vector<std::byte> data(header.bytes);
  if (!file.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(data.size()))) return {};
  const Hash128 content = hash_of_bytes(data);
  if (content.lo != header.content_lo || content.hi != header.content_hi || !belongs_to(data, properties_))
    return {};
  return data;
}

void PipelineFile::store(std::span<const std::byte> data) const {
  if (path_.empty() || data.size() > kMostBytes || !belongs_to(data, properties_)) return;
  const Hash128 content = hash_of_bytes(data);
  const PipelineHeader header{.bytes = data.size(), .content_lo = content.lo, .content_hi = content.hi};
  std::string bytes(sizeof header + data.size(), '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, data.data(), data.size());
  replace_file(path_, bytes);
}

}  // namespace caldera::vulkan
