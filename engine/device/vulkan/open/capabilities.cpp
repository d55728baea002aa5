#include "engine/device/vulkan/open/capabilities.h"

#include <algorithm>
#include <limits>
#include <string_view>

namespace caldera::vulkan {
namespace {

constexpr OptionalFeature kOptionalFeatures[] = {
    {"8-bit-storage", &Capabilities::storage_8bit},
    {"16-bit-storage", &Capabilities::storage_16bit},
    {"float16", &Capabilities::float16},
    {"float64", &Capabilities::float64},
    {"int64", &Capabilities::int64},
    {"int8", &Capabilities::int8},
    {"int16", &Capabilities::int16},
    {"subgroup-arithmetic", &Capabilities::subgroup_arithmetic},
    {"subgroup-ballot", &Capabilities::subgroup_ballot},
    {"subgroup-size-control", &Capabilities::subgroup_size_control},
    {"nan-inf-preserve", &Capabilities::preserve_nan_inf},
    {"memory-budget", &Capabilities::memory_budget},
    {"cooperative-matrix", &Capabilities::cooperative_matrix},
};

/// Whether the device has the one kind of matrices that shaders/matmul/matmul_cooperative.glsl uses.
bool has_cooperative_matrices(VkPhysicalDevice device) {
  if (vkGetPhysicalDeviceCooperativeMatrixPropertiesNV == nullptr) return false;
  VkPhysicalDeviceCooperativeMatrixFeaturesNV feature{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV};
  VkPhysicalDeviceFeatures2 features{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                     .pNext = &feature};
  vkGetPhysicalDeviceFeatures2(device, &features);
  if (feature.cooperativeMatrix != VK_TRUE) return false;
  std::uint32_t count = 0;
  if (vkGetPhysicalDeviceCooperativeMatrixPropertiesNV(device, &count, nullptr) != VK_SUCCESS) return false;
  std::vector<VkCooperativeMatrixPropertiesNV> kinds(
      count, {.sType = VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_NV});
  if (vkGetPhysicalDeviceCooperativeMatrixPropertiesNV(device, &count, kinds.data()) < 0) return false;
  return std::ranges::any_of(kinds, [](const VkCooperativeMatrixPropertiesNV& kind) {
    return kind.MSize == 16 && kind.NSize == 16 && kind.KSize == 16 && kind.scope == VK_SCOPE_SUBGROUP_NV &&
           kind.AType == VK_COMPONENT_TYPE_FLOAT16_NV && kind.BType == VK_COMPONENT_TYPE_FLOAT16_NV &&
           kind.CType == VK_COMPONENT_TYPE_FLOAT32_NV && kind.DType == VK_COMPONENT_TYPE_FLOAT32_NV;
  });
}

// A row a message that CALDERA_VALIDATION=2 gives and that stays.
constexpr AcceptedMessage kAcceptedMessages[] = {
    {"UNASSIGNED-BestPractices-vkCreateInstance-specialuse-extension-debugging",
     "VK_EXT_debug_utils and VK_EXT_validation_features are for debugging only, and only enabled where "
     "CALDERA_VALIDATION asks for the layer whose messages they bring."},
    {"UNASSIGNED-BestPractices-vkCreateCommandPool-command-buffer-reset",
     "The slices of a transfer are recorded again one by one while others are in flight, so their pool "
     "cannot be reset as a whole; a pool for each would hold more memory to save nothing that was measured."},
};

std::vector<VkExtensionProperties> extensions_of(VkPhysicalDevice device) {
  std::uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, extensions.data());
  return extensions;
}

}  // namespace

std::span<const OptionalFeature> optional_features() { return kOptionalFeatures; }
std::span<const AcceptedMessage> accepted_messages() { return kAcceptedMessages; }

Capabilities query_capabilities(VkPhysicalDevice device, std::string& missing) {
  Capabilities c;
  const std::vector<VkExtensionProperties> extensions = extensions_of(device);
  const auto has = [&](std::string_view name) {
    return std::any_of(extensions.begin(), extensions.end(),
                       [&](const VkExtensionProperties& e) { return name == e.extensionName; });
  };
  const bool size_control = has(VK_EXT_SUBGROUP_SIZE_CONTROL_EXTENSION_NAME);

  VkPhysicalDeviceMaintenance4PropertiesKHR maintenance4{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES_KHR,
      .maxBufferSize = std::numeric_limits<VkDeviceSize>::max()};
  VkPhysicalDeviceSubgroupSizeControlPropertiesEXT size_properties{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_PROPERTIES_EXT};
  VkPhysicalDeviceFloatControlsProperties float_controls{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FLOAT_CONTROLS_PROPERTIES,
      .pNext = size_control ? &size_properties : nullptr};
  VkPhysicalDeviceMaintenance3Properties maintenance{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES, .pNext = &float_controls};
  VkPhysicalDeviceSubgroupProperties subgroup{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES,
                                              .pNext = &maintenance};
  VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
  // Before 1.2 these structures are unknown to the driver.
  vkGetPhysicalDeviceProperties(device, &properties.properties);
  if (properties.properties.apiVersion < VK_API_VERSION_1_2) {
    missing = "Vulkan 1.2";
    return c;
  }
  properties.pNext = &subgroup;
  if (has(VK_KHR_MAINTENANCE_4_EXTENSION_NAME)) {
    maintenance4.pNext = properties.pNext;
    properties.pNext = &maintenance4;
  }
  vkGetPhysicalDeviceProperties2(device, &properties);

  VkPhysicalDeviceSubgroupSizeControlFeaturesEXT size_features{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_SIZE_CONTROL_FEATURES_EXT};
  VkPhysicalDeviceVulkan12Features v12{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                       .pNext = size_control ? &size_features : nullptr};
  VkPhysicalDeviceVulkan11Features v11{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES,
                                       .pNext = &v12};
  VkPhysicalDeviceFeatures2 features{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2, .pNext = &v11};
  vkGetPhysicalDeviceFeatures2(device, &features);

  if (!v12.bufferDeviceAddress) missing = "bufferDeviceAddress";
  if (!v12.timelineSemaphore) missing = "timelineSemaphore";
  if (!v12.scalarBlockLayout) missing = "scalarBlockLayout";

  c.storage_8bit = v12.storageBuffer8BitAccess;
  c.storage_16bit = v11.storageBuffer16BitAccess;
  c.float16 = v12.shaderFloat16;
  c.float64 = features.features.shaderFloat64;
  c.int64 = features.features.shaderInt64;
  c.int8 = v12.shaderInt8;
  c.int16 = features.features.shaderInt16;
  c.subgroup_arithmetic = (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
                          (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_ARITHMETIC_BIT) != 0 &&
                          subgroup.subgroupSize <= 128;
  c.subgroup_ballot = (subgroup.supportedStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0 &&
                      (subgroup.supportedOperations & VK_SUBGROUP_FEATURE_BALLOT_BIT) != 0;
  c.subgroup_size_control = size_control && size_features.subgroupSizeControl &&
                            size_features.computeFullSubgroups &&
                            (size_properties.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
  c.preserve_nan_inf = float_controls.shaderSignedZeroInfNanPreserveFloat32 &&
                       (!c.float64 || float_controls.shaderSignedZeroInfNanPreserveFloat64);
  c.memory_budget = has(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  c.portability = has("VK_KHR_portability_subset");
  c.cooperative_matrix = has(VK_NV_COOPERATIVE_MATRIX_EXTENSION_NAME) && c.storage_16bit && c.float16 &&
                         c.subgroup_size_control && subgroup.subgroupSize == 32 &&
                         has_cooperative_matrices(device);

  const VkPhysicalDeviceLimits& limits = properties.properties.limits;
  c.software = properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  c.subgroup_size = subgroup.subgroupSize;
  c.max_groups = limits.maxComputeWorkGroupCount[0];
  c.max_invocations = limits.maxComputeWorkGroupInvocations;
  if (c.subgroup_size_control) c.max_subgroups = size_properties.maxComputeWorkgroupSubgroups;
  c.shared_memory = limits.maxComputeSharedMemorySize;
  c.max_allocation = std::min(maintenance.maxMemoryAllocationSize, maintenance4.maxBufferSize);
  return c;
}

}  // namespace caldera::vulkan
