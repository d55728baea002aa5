#include "engine/device/vulkan/open/device_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "engine/device/environment.h"

namespace caldera::vulkan {
namespace {

constexpr std::uint32_t kAmd = 0x1002, kApple = 0x106B, kArm = 0x13B5, kIntel = 0x8086, kNvidia = 0x10DE,
                        kQualcomm = 0x5143;

struct VendorRow {
  Vendor vendor;
  std::uint32_t id;  // of PCI; 0: none of its own
  const char* name;
};
constexpr VendorRow kVendors[] = {
    {Vendor::amd, kAmd, "amd"},          {Vendor::apple, kApple, "apple"},
    {Vendor::arm, kArm, "arm"},          {Vendor::intel, kIntel, "intel"},
    {Vendor::nvidia, kNvidia, "nvidia"}, {Vendor::qualcomm, kQualcomm, "qualcomm"},
    {Vendor::software, 0, "software"},
};

/// amdgpu of Linux 7 and Windows end a submit after two seconds; other work of the machine, the desktop's for
/// one, waits for a submit as well.
constexpr double kSubmit = 0.1;

/// One turn of a loop waits for memory about once; a processor has what it needs in its caches.
constexpr double kTurn = 5e-7, kSoftwareTurn = 2e-9;

constexpr TypeProfile kTypes[] = {
    {VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU,
     {.compute_units = 64, .bandwidth = 2e10, .flops = 1e12, .turn = kTurn, .submit = kSubmit}},
    {VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU,
     {.compute_units = 8,
      .unified_memory = true,
      .bandwidth = 5e9,
      .flops = 1e11,
      .turn = kTurn,
      .submit = kSubmit}},
    {VK_PHYSICAL_DEVICE_TYPE_CPU,
     {.compute_units = 4,
      .unified_memory = true,
      .few_cores = true,
      .measured = false,
      .bandwidth = 2e9,
      .flops = 1e10,
      .turn = kSoftwareTurn,
      .submit = kSubmit}},
    // A GPU that is lent in part, or one that says nothing.
    {VK_PHYSICAL_DEVICE_TYPE_OTHER,
     {.compute_units = 16, .bandwidth = 5e9, .flops = 1e11, .turn = kTurn, .submit = kSubmit}},
};

bool is_amd(const DeviceFacts& facts) { return facts.vendor_id == kAmd; }
/// GCN has subgroups of 64 alone.
bool is_rdna(const DeviceFacts& facts) { return is_amd(facts) && facts.least_subgroup_size == 32; }
/// The first two generations have no packed products of mixed signs.
bool is_rdna3(const DeviceFacts& facts) { return is_rdna(facts) && facts.packed_dot; }
bool is_intel(const DeviceFacts& facts) { return facts.vendor_id == kIntel; }
/// From Xe2 on the smallest subgroup has 16 lanes; before, 8.
bool is_xe2(const DeviceFacts& facts) { return is_intel(facts) && facts.least_subgroup_size == 16; }

constexpr ProfileRow kRows[] = {
    {"amd-gcn", "subgroups of 64 alone",
     [](const DeviceFacts& f) { return is_amd(f) && f.least_subgroup_size == 64; },
     [](DeviceProfile& p) { p.architecture = "gcn"; }},
    {"amd-rdna1", "20 waves a SIMD; later generations have 16",
     [](const DeviceFacts& f) { return is_rdna(f) && !is_rdna3(f) && f.waves_per_simd == 20; },
     [](DeviceProfile& p) { p.architecture = "rdna1"; }},
    {"amd-rdna2", "subgroups of 32, no packed products of mixed signs",
     [](const DeviceFacts& f) { return is_rdna(f) && !is_rdna3(f) && f.waves_per_simd != 20; },
     [](DeviceProfile& p) { p.architecture = "rdna2"; }},
    {"amd-rdna3", "the third generation, and those after it", is_rdna3,
     [](DeviceProfile& p) { p.architecture = "rdna3"; }},
    {"amd-matrices", "AMD's own drivers list cooperative matrices for GPUs that have no units for them",
     [](const DeviceFacts& f) {
       return is_amd(f) && !is_rdna3(f) &&
              (f.driver == VK_DRIVER_ID_AMD_PROPRIETARY || f.driver == VK_DRIVER_ID_AMD_OPEN_SOURCE);
     },
     [](DeviceProfile& p) { p.matrix_units = false; }},
    {"amd-graphics-queue",
     "llama.cpp's decoding is 5 % faster on the family that draws as well (an RX 9070 XT on RADV)", is_rdna,
     [](DeviceProfile& p) { p.graphics_queue = true; }},
    {"amd-integrated-copies",
     "llama.cpp is slower with copies on a queue of their own where memory is shared",
     [](const DeviceFacts& f) { return is_amd(f) && f.type == VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU; },
     [](DeviceProfile& p) { p.copy_queue = false; }},
    {"intel-subgroups", "subgroups of 32 have half as many registers a lane, and kernels of rows spill",
     [](const DeviceFacts& f) {
       return is_intel(f) && f.size_control && f.least_subgroup_size <= 16 && f.most_subgroup_size >= 16;
     },
     [](DeviceProfile& p) { p.subgroup_size = 16; }},
    {"intel-xe2", "the smallest subgroup has 16 lanes", is_xe2,
     [](DeviceProfile& p) { p.architecture = "xe2"; }},
    {"intel-matrices", "before Xe2, matrices are slower than none (llama.cpp on an Arc A770)",
     [](const DeviceFacts& f) { return is_intel(f) && !is_xe2(f); },
     [](DeviceProfile& p) { p.matrix_units = false; }},
};

}  // namespace

std::span<const TypeProfile> type_profiles() { return kTypes; }
std::span<const ProfileRow> profile_rows() { return kRows; }

DeviceProfile profile_of(const DeviceFacts& facts) {
  const auto* const type = std::ranges::find(kTypes, facts.type, &TypeProfile::type);
  DeviceProfile profile = type != std::end(kTypes) ? type->profile : std::prev(std::end(kTypes))->profile;
  if (facts.type == VK_PHYSICAL_DEVICE_TYPE_CPU) {
    profile.vendor = Vendor::software;
  } else {
    const auto* const vendor = std::ranges::find(kVendors, facts.vendor_id, &VendorRow::id);
    if (vendor != std::end(kVendors)) profile.vendor = vendor->vendor;
  }
  if (facts.compute_units != 0) profile.compute_units = facts.compute_units;
  profile.subgroup_size = facts.subgroup_size;
  for (const ProfileRow& row : kRows) {
    if (row.applies(facts)) row.change(profile);
  }
  return profile;
}

void apply_profile(const DeviceProfile& profile, Capabilities& capabilities) {
  if (capabilities.subgroup_size_control) capabilities.subgroup_size = profile.subgroup_size;
  if (profile.matrix_units) return;
  leave_out("cooperative-matrix", capabilities);
}

std::string describe(const DeviceProfile& profile) {
  std::string text;
  const auto* const vendor = std::ranges::find(kVendors, profile.vendor, &VendorRow::vendor);
  if (vendor != std::end(kVendors)) text = vendor->name;
  if (!profile.architecture.empty()) text += fmt::format(" {}", profile.architecture);
  return fmt::format("{}{}{} compute units, subgroups of {}", text, text.empty() ? "" : ", ",
                     profile.compute_units, profile.subgroup_size);
}

}  // namespace caldera::vulkan
