#include "engine/device/vulkan/open/device_facts.h"

#include <algorithm>
#include <string_view>
#include <thread>
#include <vector>

namespace caldera::vulkan {
namespace {

/// The properties that extensions bring, in one chain: a structure is in it where the device has what it is
/// of.
class Chain {
 public:
  explicit Chain(VkPhysicalDevice device) : device_(device) {
    std::uint32_t count = 0;
    vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
    extensions_.resize(count);
    vkEnumerateDeviceExtensionProperties(device, nullptr, &count, extensions_.data());
  }

  template <typename Properties>
  void add(Properties& properties, std::string_view extension) {
    if (std::ranges::none_of(extensions_, [&](const auto& e) { return extension == e.extensionName; }))
      return;
    add(properties);
  }
  template <typename Properties>
  void add(Properties& properties) {
    properties.pNext = first_;
    first_ = &properties;
  }

  VkPhysicalDeviceProperties get() const {
    VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                           .pNext = first_};
    vkGetPhysicalDeviceProperties2(device_, &properties);
    return properties.properties;
  }

 private:
  VkPhysicalDevice device_;
  std::vector<VkExtensionProperties> extensions_;
  void* first_ = nullptr;
};

}  // namespace

DeviceFacts query_facts(VkPhysicalDevice device) {
  VkPhysicalDeviceDriverProperties driver{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
  VkPhysicalDeviceSubgroupProperties subgroup{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES};
  VkPhysicalDeviceSubgroupSizeControlPropertiesEXT sizes{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT};
  VkPhysicalDeviceShaderIntegerDotProductProperties dots{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_INTEGER_DOT_PRODUCT_PROPERTIES};
  VkPhysicalDeviceShaderSMBuiltinsPropertiesNV nvidia{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV};
  VkPhysicalDeviceShaderCorePropertiesAMD amd{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_AMD};
  VkPhysicalDeviceShaderCoreProperties2AMD amd2{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_PROPERTIES_2_AMD};
  VkPhysicalDeviceShaderCoreBuiltinsPropertiesARM arm{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CORE_BUILTINS_PROPERTIES_ARM};
  Chain chain(device);
  chain.add(driver);
  chain.add(subgroup);
  chain.add(sizes, VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);
  chain.add(dots, VK_KHR_SHADER_INTEGER_DOT_PRODUCT_EXTENSION_NAME);
  chain.add(nvidia, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME);
  chain.add(amd, VK_AMD_SHADER_CORE_PROPERTIES_EXTENSION_NAME);
  chain.add(amd2, VK_AMD_SHADER_CORE_PROPERTIES_2_EXTENSION_NAME);
  chain.add(arm, VK_ARM_SHADER_CORE_BUILTINS_EXTENSION_NAME);
  const VkPhysicalDeviceProperties properties = chain.get();

  DeviceFacts facts{.vendor_id = properties.vendorID,
                    .type = properties.deviceType,
                    .driver = driver.driverID,
                    .waves_per_simd = amd.wavefrontsPerSimd,
                    .packed_dot = dots.integerDotProduct4x8BitPackedMixedSignednessAccelerated == VK_TRUE,
                    .size_control = sizes.maxSubgroupSize != 0,
                    .subgroup_size = subgroup.subgroupSize,
                    .least_subgroup_size = subgroup.subgroupSize,
                    .most_subgroup_size = subgroup.subgroupSize};
  if (facts.size_control) {
    facts.least_subgroup_size = sizes.minSubgroupSize;
    facts.most_subgroup_size = sizes.maxSubgroupSize;
    facts.size_control = (sizes.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  }
  const std::uint32_t amd_units =
      amd.shaderEngineCount * amd.shaderArraysPerEngineCount * amd.computeUnitsPerShaderArray;
  for (const std::uint32_t units :
       {nvidia.shaderSMCount, amd2.activeComputeUnitCount, amd_units, arm.shaderCoreCount}) {
    if (facts.compute_units == 0) facts.compute_units = units;
  }
  if (facts.type == VK_PHYSICAL_DEVICE_TYPE_CPU)
    facts.compute_units = std::max(1U, std::thread::hardware_concurrency());
  return facts;
}

}  // namespace caldera::vulkan
