#include "engine/device/vulkan/open/cooperative_matrices.h"

#include <algorithm>
#include <vector>

namespace caldera::vulkan {
namespace {

// VkComponentTypeKHR and VkScopeKHR.
constexpr std::int32_t kFloat32 = 1;
constexpr std::int32_t kSubgroup = 3;

/// VkCooperativeMatrixPropertiesKHR.
struct Properties {
  VkStructureType type = static_cast<VkStructureType>(1000506001);
  void* next = nullptr;
  MatrixShape shape;
  std::int32_t a_type = 0, b_type = 0, c_type = 0, result_type = 0;
  VkBool32 saturates = VK_FALSE;
  std::int32_t scope = 0;
};
using GetProperties = VkResult(VKAPI_PTR*)(VkPhysicalDevice, std::uint32_t*, Properties*);

/// VkPhysicalDeviceCooperativeMatrixPropertiesKHR.
struct StagesProperties {
  VkStructureType type = static_cast<VkStructureType>(1000506002);
  void* next = nullptr;
  VkShaderStageFlags supported = 0;
};

/// Whether compute shaders have them, of such elements.
bool has_matrices(VkPhysicalDevice device, MatrixElement element) {
  Bfloat16Features bfloat16;
  CooperativeMatrixFeatures feature{.next = element == MatrixElement::bf16 ? &bfloat16 : nullptr};
  VkPhysicalDeviceFeatures2 features{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                     .pNext = &feature};
  vkGetPhysicalDeviceFeatures2(device, &features);
  StagesProperties stages;
  VkPhysicalDeviceProperties2 properties{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                         .pNext = &stages};
  vkGetPhysicalDeviceProperties2(device, &properties);
  if (element == MatrixElement::bf16 &&
      (bfloat16.type_in_shaders != VK_TRUE || bfloat16.cooperative_matrix != VK_TRUE))
    return false;
  return feature.cooperative_matrix == VK_TRUE && (stages.supported & VK_SHADER_STAGE_COMPUTE_BIT) != 0;
}

}  // namespace

MatrixShape largest_matrices(VkPhysicalDevice device, MatrixElement element, std::uint32_t side) {
  const auto number = static_cast<std::int32_t>(element);
  const auto get = reinterpret_cast<GetProperties>(
      vkGetInstanceProcAddr(volkGetLoadedInstance(), "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
  if (get == nullptr || !has_matrices(device, element)) return {};
  std::uint32_t count = 0;
  if (get(device, &count, nullptr) != VK_SUCCESS) return {};
  std::vector<Properties> all(count);
  if (get(device, &count, all.data()) < 0) return {};
  MatrixShape best;
  const auto volume = [](const MatrixShape& s) { return std::uint64_t{s.m} * s.n * s.k; };
  const auto divides = [side](std::uint32_t extent) {
    return extent != 0 && extent % 8 == 0 && side % extent == 0;
  };
  for (const Properties& p : all) {
    const bool usable = p.scope == kSubgroup && p.a_type == number && p.b_type == number &&
                        p.c_type == kFloat32 && p.result_type == kFloat32 && p.saturates == VK_FALSE &&
                        divides(p.shape.m) && divides(p.shape.n) && divides(p.shape.k);
    if (usable && volume(p.shape) > volume(best)) best = p.shape;
  }
  return best;
}

}  // namespace caldera::vulkan
