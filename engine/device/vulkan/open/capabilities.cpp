#include "engine/device/vulkan/open/capabilities.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string_view>

#include "engine/base/error.h"
#include "engine/device/vulkan/open/cooperative_matrices.h"

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
    {"subgroup-uniform-control-flow", &Capabilities::uniform_control_flow},
    {"nan-inf-preserve", &Capabilities::preserve_nan_inf},
    {"memory-model", &Capabilities::memory_model},
    {"memory-budget", &Capabilities::memory_budget},
    {"cooperative-matrix", &Capabilities::cooperative_matrix},
    {"bfloat16-matrix", &Capabilities::bfloat16_matrix},
    {"pipeline-statistics", &Capabilities::pipeline_statistics},
};

constexpr const char* kForDebugging =
    "The extension is for debugging only, and only enabled where CALDERA_VALIDATION asks for the layer whose "
    "messages it brings.";
constexpr const char* kOlderLayers =
    "The layers of Debian 12 take their settings through no other extension; those of today know both.";
constexpr const char* kSlices =
    "The slices of a transfer are recorded again one by one while others are in flight, so their pool cannot "
    "be "
    "reset as a whole; a pool for each would hold more memory to save nothing that was measured.";

// A row a message that CALDERA_VALIDATION=2 gives and that stays; layers before and since 1.3.290 have other
// ids.
constexpr AcceptedMessage kAcceptedMessages[] = {
    {"UNASSIGNED-BestPractices-vkCreateInstance-specialuse-extension-debugging", "", kForDebugging},
    {"BestPractices-specialuse-extension", "VK_EXT_debug_utils", kForDebugging},
    {"BestPractices-specialuse-extension", "VK_EXT_validation_features", kForDebugging},
    {"BestPractices-deprecated-extension", "VK_EXT_validation_features", kOlderLayers},
    {"UNASSIGNED-BestPractices-vkCreateCommandPool-command-buffer-reset", "", kSlices},
    {"BestPractices-vkCreateCommandPool-command-buffer-reset", "", kSlices},
};

std::vector<VkExtensionProperties> extensions_of(VkPhysicalDevice device) {
  std::uint32_t count = 0;
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  vkEnumerateDeviceExtensionProperties(device, nullptr, &count, extensions.data());
  return extensions;
}

/// What needs other features is there only with them.
void settle(Capabilities& c) {
  const bool has = c.storage_16bit && c.memory_model && c.subgroup_size_control && c.cooperative_matrix;
  if (!has || !c.float16) c.matrix_f16 = {};
  if (!has || !c.bfloat16_matrix) c.matrix_bf16 = {};
  c.bfloat16_matrix = static_cast<bool>(c.matrix_bf16);
  c.cooperative_matrix = c.bfloat16_matrix || static_cast<bool>(c.matrix_f16);
}

}  // namespace

std::span<const OptionalFeature> optional_features() { return kOptionalFeatures; }
std::span<const AcceptedMessage> accepted_messages() { return kAcceptedMessages; }

void leave_out(std::string_view names, Capabilities& capabilities) {
  while (!names.empty()) {
    const std::string_view name = names.substr(0, names.find(','));
    names.remove_prefix(std::min(names.size(), name.size() + 1));
    const auto* const feature = std::ranges::find(kOptionalFeatures, name, &OptionalFeature::name);
    if (feature == std::end(kOptionalFeatures)) {
      std::string known;
      for (const OptionalFeature& f : kOptionalFeatures)
        known += std::string(known.empty() ? "" : ", ") + f.name;
      throw ValueError("CALDERA_VULKAN_WITHOUT: no feature '" + std::string(name) + "'; there are " + known);
    }
    capabilities.*feature->member = false;
  }
  settle(capabilities);
}

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
  VkPhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR flow_features{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_FEATURES_KHR,
      .pNext = size_control ? &size_features : nullptr};
  const bool flow = has(VK_KHR_SHADER_SUBGROUP_UNIFORM_CONTROL_FLOW_EXTENSION_NAME);
  VkPhysicalDeviceVulkan12Features v12{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
                                       .pNext = flow ? &flow_features : flow_features.pNext};
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR statistics{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
  if (has(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME)) {
    statistics.pNext = v12.pNext;
    v12.pNext = &statistics;
  }
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
  // Where there is one size only, some drivers (NVK) have no stage in which to ask for it.
  c.many_subgroup_sizes = size_properties.minSubgroupSize != size_properties.maxSubgroupSize;
  c.subgroup_size_control = size_control && size_features.subgroupSizeControl &&
                            size_features.computeFullSubgroups &&
                            (!c.many_subgroup_sizes ||
                             (size_properties.requiredSubgroupSizeStages & VK_SHADER_STAGE_COMPUTE_BIT) != 0);
  c.uniform_control_flow = flow_features.shaderSubgroupUniformControlFlow == VK_TRUE;
  c.preserve_nan_inf = float_controls.shaderSignedZeroInfNanPreserveFloat32 &&
                       (!c.float64 || float_controls.shaderSignedZeroInfNanPreserveFloat64);
  c.memory_model = v12.vulkanMemoryModel && v12.vulkanMemoryModelDeviceScope;
  c.memory_budget = has(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME);
  c.pipeline_statistics = statistics.pipelineExecutableInfo;
  c.portability = has("VK_KHR_portability_subset");
  c.cooperative_matrix = has(kCooperativeMatrixExtension);
  c.bfloat16_matrix = c.cooperative_matrix && has(kBfloat16Extension);
  if (c.cooperative_matrix)
    c.matrix_f16 = largest_matrices(device, MatrixElement::f16, Capabilities::kMatrixSide);
  if (c.bfloat16_matrix)
    c.matrix_bf16 = largest_matrices(device, MatrixElement::bf16, Capabilities::kMatrixSide);
  settle(c);

  const VkPhysicalDeviceLimits& limits = properties.properties.limits;
  c.software = properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  c.subgroup_size = subgroup.subgroupSize;
  c.max_groups = limits.maxComputeWorkGroupCount[0];
  c.max_invocations = limits.maxComputeWorkGroupInvocations;
  if (c.subgroup_size_control) c.max_subgroups = size_properties.maxComputeWorkgroupSubgroups;
  c.shared_memory = limits.maxComputeSharedMemorySize;
  c.max_buffer = maintenance4.maxBufferSize;
  c.max_allocation = std::min(maintenance.maxMemoryAllocationSize, c.max_buffer);
  return c;
}

}  // namespace caldera::vulkan
