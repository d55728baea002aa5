// VK_KHR_cooperative_matrix: products of small matrices that a subgroup computes together, on the units that
// GPUs have for them.
//
// The headers of Debian 12 are older than the extension, so what is needed of it is declared here, under
// names of Caldera's; the numbers are those of the Vulkan registry.
#pragma once

#include <cstdint>

#include "engine/device/vulkan/open/vk.h"

namespace caldera::vulkan {

inline constexpr const char* kCooperativeMatrixExtension = "VK_KHR_cooperative_matrix";

/// VkPhysicalDeviceCooperativeMatrixFeaturesKHR, member by member.
struct CooperativeMatrixFeatures {
  VkStructureType type = static_cast<VkStructureType>(1000506000);
  void* next = nullptr;
  VkBool32 cooperative_matrix = VK_FALSE;
  VkBool32 robust_buffer_access = VK_FALSE;
};

inline constexpr const char* kBfloat16Extension = "VK_KHR_shader_bfloat16";

/// VkPhysicalDeviceShaderBfloat16FeaturesKHR, member by member.
struct Bfloat16Features {
  VkStructureType type = static_cast<VkStructureType>(1000141000);
  void* next = nullptr;
  VkBool32 type_in_shaders = VK_FALSE;
  VkBool32 dot_product = VK_FALSE;
  VkBool32 cooperative_matrix = VK_FALSE;
};

/// Names the type of the elements of A and B: numbers of VkComponentTypeKHR.
enum class MatrixElement : std::int32_t { f16 = 0, bf16 = 1000141000 };

/// C (m x n) += A (m x k) B (k x n), by one subgroup. Zeros: none.
struct MatrixShape {
  std::uint32_t m = 0, n = 0, k = 0;

  explicit operator bool() const { return m != 0; }
  friend bool operator==(const MatrixShape&, const MatrixShape&) = default;
};

/// The largest shape for such A and B and sums in f32 whose sides are multiples of 8 that divide `side`, of
/// those that the device lists; none where it lists none or lacks a feature. The device has the extensions.
MatrixShape largest_matrices(VkPhysicalDevice device, MatrixElement element, std::uint32_t side);

}  // namespace caldera::vulkan
