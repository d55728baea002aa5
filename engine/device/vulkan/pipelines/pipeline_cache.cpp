#include "engine/device/vulkan/pipelines/pipeline_cache.h"

#include <fmt/format.h>

#include <exception>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/vulkan/pipelines/embedded_shaders.h"
#include "engine/device/vulkan/pipelines/shader_compiler.h"
#include "engine/device/vulkan/spirv/finish.h"
#include "engine/device/vulkan/spirv/reconverge.h"
#include "engine/device/vulkan/spirv/requirements.h"

namespace caldera::vulkan {
namespace {

constexpr std::uint64_t kDefaultPipelineLimit = std::uint64_t{64} << 20;

Hash128 with_constants(Hash128 shader, std::span<const std::int32_t> constants) {
  for (std::int32_t c : constants) shader.mix(static_cast<std::uint64_t>(static_cast<std::uint32_t>(c)));
  return shader;
}

VkPipelineCreateFlags pipeline_flags(const LogicalDevice& device) {
  VkPipelineCreateFlags flags = VK_PIPELINE_CREATE_DISPATCH_BASE;  // a dispatch may be handed over in parts
  if (device.keeps_statistics())
    flags |= VK_PIPELINE_CREATE_CAPTURE_STATISTICS_BIT_KHR |
             VK_PIPELINE_CREATE_CAPTURE_INTERNAL_REPRESENTATIONS_BIT_KHR;
  return flags;
}

}  // namespace

PipelineCache::PipelineCache(DevicePtr device, DiskCache disk)
    : device_(std::move(device)),
      disk_(std::move(disk)),
      file_(disk_.directory(), device_->physical().handle),
      pipelines_(kDefaultPipelineLimit) {
  const VkPushConstantRange range{
      .stageFlags = VK_SHADER_STAGE_COMPUTE_BIT, .offset = 0, .size = sizeof(KernelPush)};
  const VkPipelineLayoutCreateInfo info{.sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
                                        .pushConstantRangeCount = 1,
                                        .pPushConstantRanges = &range};
  device_->check(device_->vk().vkCreatePipelineLayout(device_->handle(), &info, nullptr, &layout_),
                 "creating the pipeline layout");
  // What a cache gives back, a driver may not be able to describe.
  if (device_->is_survey()) return;
  const std::vector<std::byte> known = file_.load();
  if (!known.empty()) disk_.folder().used(file_.path());
  open_driver_cache(known);
}

void PipelineCache::open_driver_cache(std::span<const std::byte> known) {
  const VkPipelineCacheCreateInfo cache{.sType = VK_STRUCTURE_TYPE_PIPELINE_CACHE_CREATE_INFO,
                                        .initialDataSize = known.size(),
                                        .pInitialData = known.empty() ? nullptr : known.data()};
  // Without one, pipelines are only made more slowly.
  if (device_->vk().vkCreatePipelineCache(device_->handle(), &cache, nullptr, &cache_) != VK_SUCCESS)
    cache_ = VK_NULL_HANDLE;
  cache_bytes_ = known.size();
}

void PipelineCache::save() noexcept {
  try {
    const std::lock_guard lock(mutex_);
    store();
  } catch (const std::exception&) {
    // A cache: the next process starts without it.
  }
}

/// Under the mutex.
void PipelineCache::store() {
  if (cache_ == VK_NULL_HANDLE || saved_ == compiled() || file_.path().empty()) return;
  saved_ = compiled();
  std::size_t bytes = 0;
  const VolkDeviceTable& vk = device_->vk();
  if (vk.vkGetPipelineCacheData(device_->handle(), cache_, &bytes, nullptr) != VK_SUCCESS) return;
  std::vector<std::byte> data(bytes);
  if (vk.vkGetPipelineCacheData(device_->handle(), cache_, &bytes, data.data()) != VK_SUCCESS) return;
  data.resize(bytes);
  file_.store(data);
  disk_.folder().wrote(data.size());
}

PipelineCache::~PipelineCache() {
  save();
  device_->vk().vkDestroyPipelineCache(device_->handle(), cache_, nullptr);
  device_->vk().vkDestroyPipelineLayout(device_->handle(), layout_, nullptr);
}

/// One that could not be made is asked for again.
PipelinePtr PipelineCache::find(const Hash128& key, const std::function<PipelinePtr()>& how) {
  PipelinePtr found = pipelines_.get(key, how);
  if (!found->has_failed()) return found;
  pipelines_.forget(key, found.get());
  return pipelines_.get(key, how);
}

PipelinePtr PipelineCache::generated(const Hash128& shader, const std::string& name, bool full_subgroups,
                                     const std::function<std::string()>& text,
                                     std::span<const std::int32_t> constants) {
  return find(with_constants(shader, constants), [&] {
    std::string source = text();
    const std::size_t bytes = source.size();
    return std::make_shared<Pipeline>(device_, bytes,
                                      [this, name, full_subgroups, source = std::move(source),
                                       list = std::vector<std::int32_t>(constants.begin(), constants.end())] {
                                        return make(words_of(source, name), name, full_subgroups, list);
                                      });
  });
}

PipelinePtr PipelineCache::embedded(std::string_view name, std::span<const std::int32_t> constants,
                                    bool full_subgroups) {
  Hash128 shader;
  shader.mix(name);
  return find(with_constants(shader, constants), [&] {
    const std::span<const std::uint32_t> words = embedded_shader(name);
    if (words.empty()) throw DeviceError(fmt::format("no shader {} was built into this program", name));
    return std::make_shared<Pipeline>(device_, words.size_bytes(),
                                      [this, words, name = std::string(name), full_subgroups,
                                       list = std::vector<std::int32_t>(constants.begin(), constants.end())] {
                                        return make(words, name, full_subgroups, list);
                                      });
  });
}

std::vector<std::uint32_t> PipelineCache::words_of(const std::string& source, const std::string& name) {
  const Hash128 key = DiskCache::key(source);
  if (auto stored = disk_.load(key)) return std::move(*stored);
  std::vector<std::uint32_t> words = compile_glsl(source, name);
  disk_.store(key, words);
  return words;
}

void PipelineCache::make(const std::vector<PipelinePtr>& pipelines) { make_side_by_side(pipelines); }

/// Drivers see to it that several threads may make pipelines with one cache of theirs. What it holds has a
/// bound, too: it cannot be made to forget single pipelines, so it starts again.
VkResult PipelineCache::create(const VkComputePipelineCreateInfo& info, std::size_t code_bytes,
                               VkPipeline& pipeline) {
  VkResult result = VK_SUCCESS;
  {
    const std::shared_lock lock(mutex_);
    result = device_->vk().vkCreateComputePipelines(device_->handle(), cache_, 1, &info, nullptr, &pipeline);
  }
  if (cache_ == VK_NULL_HANDLE) return result;
  if (cache_bytes_.fetch_add(code_bytes, std::memory_order_relaxed) + code_bytes < PipelineFile::kMostBytes)
    return result;
  const std::lock_guard lock(mutex_);
  if (cache_ == VK_NULL_HANDLE || cache_bytes_ < PipelineFile::kMostBytes) return result;
  device_->vk().vkDestroyPipelineCache(device_->handle(), cache_, nullptr);
  open_driver_cache({});
  return result;
}

spirv::ModuleFacts PipelineCache::facts(VkPipeline pipeline) const {
  const std::lock_guard lock(facts_mutex_);
  const auto found = facts_.find(pipeline);
  return found != facts_.end() ? found->second : spirv::ModuleFacts{};
}

VkPipeline PipelineCache::make(Words shader, std::string_view name, bool full_subgroups,
                               std::span<const std::int32_t> constants) {
  std::vector<std::uint32_t> words = spirv::finish(shader, name);
  if (device_->capabilities().uniform_control_flow) words = spirv::reconverging(words, name);
  // What a driver does with a feature that it does not have is anything, a crash included.
  if (const auto missing = spirv::missing_features(words, device_->capabilities(), name); !missing.empty())
    throw DeviceError(fmt::format("kernel {}: {} has no {}, which it needs", name, device_->name(),
                                  fmt::join(missing, ", ")));
  std::vector<VkSpecializationMapEntry> entries;
  for (std::uint32_t i = 0; i < constants.size(); ++i)
    entries.push_back({.constantID = i, .offset = 4 * i, .size = 4});
  const VkSpecializationInfo specialization{.mapEntryCount = static_cast<std::uint32_t>(entries.size()),
                                            .pMapEntries = entries.data(),
                                            .dataSize = constants.size_bytes(),
                                            .pData = constants.data()};
  const VolkDeviceTable& vk = device_->vk();
  const Capabilities& can = device_->capabilities();
  const VkShaderModuleCreateInfo module_info{.sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
                                             .codeSize = 4 * words.size(),
                                             .pCode = words.data()};
  VkShaderModule module = VK_NULL_HANDLE;
  device_->check(vk.vkCreateShaderModule(device_->handle(), &module_info, nullptr, &module),
                 fmt::format("kernel {}: creating its shader module", name));
  const VkPipelineShaderStageRequiredSubgroupSizeCreateInfoEXT size{
      .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_REQUIRED_SUBGROUP_SIZE_CREATE_INFO_EXT,
      .requiredSubgroupSize = can.subgroup_size};
  const bool sized = full_subgroups && can.subgroup_size_control;
  const VkComputePipelineCreateInfo info{
      .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
      .flags = pipeline_flags(*device_),
      .stage =
          {.sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
           .pNext = sized && can.many_subgroup_sizes ? &size : nullptr,
           .flags =
               sized
                   ? VkPipelineShaderStageCreateFlags{VK_PIPELINE_SHADER_STAGE_CREATE_REQUIRE_FULL_SUBGROUPS_BIT_EXT}
                   : 0,
           .stage = VK_SHADER_STAGE_COMPUTE_BIT,
           .module = module,
           .pName = "main",
           .pSpecializationInfo = constants.empty() ? nullptr : &specialization},
      .layout = layout_};
  VkPipeline pipeline = VK_NULL_HANDLE;
  const VkResult result = create(info, shader.size_bytes(), pipeline);
  vk.vkDestroyShaderModule(device_->handle(), module, nullptr);
  device_->check(result, fmt::format("kernel {}: creating its pipeline", name));
  compiled_.fetch_add(1, std::memory_order_relaxed);
  if (device_->is_survey()) {
    const std::lock_guard lock(facts_mutex_);
    facts_[pipeline] = spirv::facts_of(words, constants, name);
  }
  return pipeline;
}

}  // namespace caldera::vulkan
