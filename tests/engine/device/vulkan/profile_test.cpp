// Profiles of devices, made from what their drivers say: the facts are those of published reports of GPUs.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "engine/device/vulkan/open/device_profile.h"
#include "engine/device/vulkan/open/physical_device.h"
#include "tests/support/devices.h"

namespace caldera {
namespace {

using vulkan::Capabilities;
using vulkan::DeviceFacts;
using vulkan::DeviceProfile;
using vulkan::profile_of;
using vulkan::Vendor;

constexpr VkPhysicalDeviceType kDiscrete = VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU;
constexpr VkPhysicalDeviceType kIntegrated = VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU;

constexpr DeviceFacts kRadeon7900{.vendor_id = 0x1002,
                                  .type = kDiscrete,
                                  .driver = VK_DRIVER_ID_MESA_RADV,
                                  .compute_units = 96,
                                  .waves_per_simd = 16,
                                  .packed_dot = true,
                                  .size_control = true,
                                  .subgroup_size = 64,
                                  .least_subgroup_size = 32,
                                  .most_subgroup_size = 64};
constexpr DeviceFacts kArcA770{.vendor_id = 0x8086,
                               .type = kDiscrete,
                               .driver = VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA,
                               .size_control = true,
                               .subgroup_size = 32,
                               .least_subgroup_size = 8,
                               .most_subgroup_size = 32};

Capabilities with_matrices() {
  Capabilities can;
  can.storage_16bit = can.float16 = can.memory_model = can.subgroup_size_control = true;
  can.cooperative_matrix = true;
  can.matrix_f16 = {16, 16, 16};
  can.subgroup_size = 32;
  return can;
}

TEST(VulkanProfile, OfAmdsGenerations) {
  DeviceProfile profile = profile_of(kRadeon7900);
  EXPECT_EQ(profile.vendor, Vendor::amd);
  EXPECT_EQ(profile.architecture, "rdna3");
  EXPECT_EQ(profile.compute_units, 96U);
  EXPECT_EQ(profile.subgroup_size, 64U);
  EXPECT_TRUE(profile.graphics_queue);
  EXPECT_TRUE(profile.copy_queue);
  EXPECT_TRUE(profile.matrix_units);
  EXPECT_EQ(describe(profile), "amd rdna3, 96 compute units, subgroups of 64");

  DeviceFacts facts = kRadeon7900;
  facts.packed_dot = false;
  EXPECT_EQ(profile_of(facts).architecture, "rdna2");
  EXPECT_TRUE(profile_of(facts).matrix_units) << "RADV lists what there is";
  facts.driver = VK_DRIVER_ID_AMD_PROPRIETARY;
  EXPECT_FALSE(profile_of(facts).matrix_units);
  facts.waves_per_simd = 20;
  EXPECT_EQ(profile_of(facts).architecture, "rdna1");
  facts.least_subgroup_size = 64;
  EXPECT_EQ(profile_of(facts).architecture, "gcn");
  EXPECT_FALSE(profile_of(facts).graphics_queue);
  facts.type = kIntegrated;
  EXPECT_FALSE(profile_of(facts).copy_queue);
  EXPECT_TRUE(profile_of(facts).unified_memory);
}

TEST(VulkanProfile, OfIntelsGenerations) {
  const DeviceProfile profile = profile_of(kArcA770);
  EXPECT_EQ(profile.subgroup_size, 16U);
  EXPECT_FALSE(profile.matrix_units);
  EXPECT_EQ(profile.compute_units, 64U) << "what is assumed of a discrete GPU";

  DeviceFacts battlemage = kArcA770;
  battlemage.least_subgroup_size = 16;
  EXPECT_EQ(profile_of(battlemage).architecture, "xe2");
  EXPECT_EQ(profile_of(battlemage).subgroup_size, 16U);
  EXPECT_TRUE(profile_of(battlemage).matrix_units);

  DeviceFacts uncontrolled = kArcA770;
  uncontrolled.size_control = false;
  EXPECT_EQ(profile_of(uncontrolled).subgroup_size, 32U) << "no kernel may require another";
}

TEST(VulkanProfile, OfOthers) {
  const DeviceProfile nvidia = profile_of({.vendor_id = 0x10DE, .type = kDiscrete, .compute_units = 132});
  EXPECT_EQ(nvidia.vendor, Vendor::nvidia);
  EXPECT_EQ(nvidia.compute_units, 132U);
  EXPECT_TRUE(nvidia.measured);
  EXPECT_FALSE(nvidia.few_cores);
  const DeviceProfile software =
      profile_of({.vendor_id = 0x10005, .type = VK_PHYSICAL_DEVICE_TYPE_CPU, .compute_units = 2});
  EXPECT_EQ(software.vendor, Vendor::software);
  EXPECT_TRUE(software.few_cores);
  EXPECT_FALSE(software.measured);
  const DeviceProfile unknown =
      profile_of({.vendor_id = 0x1234, .type = VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU});
  EXPECT_EQ(unknown.vendor, Vendor::unknown);
  EXPECT_EQ(describe(unknown), "16 compute units, subgroups of 1");
}

TEST(VulkanProfile, OfEveryTypeIsComplete) {
  for (const vulkan::TypeProfile& type : vulkan::type_profiles()) {
    EXPECT_GT(type.profile.compute_units, 0U);
    EXPECT_GT(type.profile.bandwidth, 0);
    EXPECT_GT(type.profile.flops, type.profile.bandwidth);
    EXPECT_GT(type.profile.turn, 0);
    EXPECT_LE(type.profile.submit, 0.5) << "a quarter of what the strictest watchdog allows";
    EXPECT_GT(type.profile.submit, 0);
  }
  std::set<std::string> names;
  for (const vulkan::ProfileRow& row : vulkan::profile_rows())
    EXPECT_TRUE(names.insert(row.name).second) << row.name << " stands twice";
}

TEST(VulkanProfile, ChangesWhatADeviceCanDo) {
  Capabilities can = with_matrices();
  apply_profile(profile_of(kRadeon7900), can);
  EXPECT_TRUE(can.cooperative_matrix);
  EXPECT_EQ(can.subgroup_size, 64U);
  can = with_matrices();
  apply_profile(profile_of(kArcA770), can);
  EXPECT_FALSE(can.cooperative_matrix);
  EXPECT_EQ(can.subgroup_size, 16U);
  can = with_matrices();
  can.subgroup_size_control = false;
  apply_profile(profile_of(kArcA770), can);
  EXPECT_EQ(can.subgroup_size, 32U) << "what the driver takes, where nothing else can be asked for";
}

TEST(VulkanProfile, OfTheDevicesHereSuitsWhatTheyCanDo) {
  CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
  for (const vulkan::PhysicalDevice& device : vulkan::physical_devices()) {
    const vulkan::DeviceFacts facts = vulkan::query_facts(device.handle);
    EXPECT_GE(device.profile.subgroup_size, facts.least_subgroup_size);
    EXPECT_LE(device.profile.subgroup_size, facts.most_subgroup_size);
    EXPECT_GT(device.profile.compute_units, 0U);
    EXPECT_EQ(device.info.features.size() + device.info.missing.size(), vulkan::optional_features().size());
  }
}

}  // namespace
}  // namespace caldera
