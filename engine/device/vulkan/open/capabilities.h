// Lists what a physical device can do: one table of optional features. What a driver gets wrong is in
// quirks.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/device/vulkan/open/cooperative_matrices.h"
#include "engine/device/vulkan/open/vk.h"

namespace caldera::vulkan {

struct Capabilities {
  // Optional features; the table in capabilities.cpp names them.
  bool storage_8bit = false;
  bool storage_16bit = false;
  bool float16 = false;
  bool float64 = false;
  bool int64 = false;
  bool int8 = false;
  bool int16 = false;
  bool subgroup_arithmetic = false;
  bool subgroup_ballot = false;        // with broadcasts
  bool subgroup_size_control = false;  // pipelines may ask for full subgroups, which have `subgroup_size`
  bool uniform_control_flow = false;   // subgroups reconverge where they diverged
  bool preserve_nan_inf = false;       // SignedZeroInfNanPreserve for f32 (and f64 where there is f64)
  bool memory_model = false;           // Vulkan's, with the scope of the device; cooperative matrices need it
  bool memory_budget = false;
  bool cooperative_matrix = false;   // KHR, of `matrix_f16` or `matrix_bf16`
  bool bfloat16_matrix = false;      // of `matrix_bf16`
  bool pipeline_statistics = false;  // VK_KHR_pipeline_executable_properties; enabled where a survey asks
  bool portability = false;          // VK_KHR_portability_subset has to be enabled where it exists

  // Set by quirks (quirks.h).
  std::uint32_t loop_limit = 0;  // iterations of all loops of one invocation together; 0: no limit
  bool scalar_loads = false;     // vector loads are no faster
  bool compile_early = false;    // a kernel has to run before handlers of exit() are registered

  // Properties and limits.
  /// What a subgroup takes of C in one product is a square of this side, so shapes of matrices divide it.
  static constexpr std::uint32_t kMatrixSide = 32;
  MatrixShape matrix_f16;   // A and B of f16, sums of f32
  MatrixShape matrix_bf16;  // A and B of bf16, sums of f32
  bool software = false;    // the host's processor acts as a GPU
  std::uint32_t subgroup_size = 1;
  bool many_subgroup_sizes = false;  // so that pipelines have to say that they want `subgroup_size`
  std::uint32_t max_groups = 65535;  // workgroups along x
  // Bounds the invocations of a workgroup; where subgroup_size_control is used, see max_subgroups.
  std::uint32_t max_invocations = 128;
  std::uint32_t max_subgroups = 1U << 16;  // of a workgroup whose pipeline asks for full subgroups
  std::uint32_t shared_memory = 16384;
  std::uint64_t max_buffer = 0;      // bytes of one VkBuffer
  std::uint64_t max_allocation = 0;  // bytes of one VkDeviceMemory and the VkBuffer in it
};

/// One optional feature: its name in `caldera devices` and where it is noted.
struct OptionalFeature {
  const char* name;
  bool Capabilities::*member;
};
std::span<const OptionalFeature> optional_features();

/// Treats the features named in `names`, separated by commas, as missing, and with them cooperative matrices
/// where those need them. Throws ValueError that lists the names for one that there is not.
void leave_out(std::string_view names, Capabilities& capabilities);

/// A message of the validation layer that asks for nothing that should be done: its identifier, what it names
/// (of messages about several things), and why not.
struct AcceptedMessage {
  const char* id;
  const char* mentions;
  const char* reason;
};
std::span<const AcceptedMessage> accepted_messages();

/// Capabilities as the driver states them: quirks are to be applied. `missing` is set to what Caldera
/// requires and the device lacks, or left empty.
Capabilities query_capabilities(VkPhysicalDevice device, std::string& missing);

}  // namespace caldera::vulkan
