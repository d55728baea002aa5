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

/// C (m x n) += A (m x k) B (k x n), by one subgroup. Zeros: none.
struct MatrixShape {
  std::uint32_t m = 0, n = 0, k = 0;

  explicit operator bool() const { return m != 0; }
  friend bool operator==(const MatrixShape&, const MatrixShape&) = default;
};

/// The largest shape for A and B of f16 and sums in f32 whose sides divide `side`, of those that the device
/// lists; none where it lists none or lacks the feature. The device has the extension.
MatrixShape f16_matrices(VkPhysicalDevice device, std::uint32_t side);

}  // namespace caldera::vulkan
