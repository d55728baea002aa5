#include "eager/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <mutex>
#include <vector>

#include "eager/errors.h"
#include "engine/device/backend.h"
#include "engine/runtime/runtime.h"

namespace caldera::v1 {

namespace {

/// The Vulkan devices of this machine, asked for once.
const std::vector<caldera::DeviceInfo>& vulkan_devices() {
  static std::vector<caldera::DeviceInfo> devices = [] {
    std::vector<caldera::DeviceInfo> all = list_devices();
    std::erase_if(all, [](const auto& info) { return info.device.kind != DeviceKind::vulkan; });
    return all;
  }();
  return devices;
}

/// As messages name it; an index that no caldera::Device could hold included.
std::string vulkan_name(int index) { return fmt::format("vulkan:{}", index); }

}  // namespace

Device Device::vulkan(int index) {
  const auto& devices = vulkan_devices();
  const bool exists = std::any_of(devices.begin(), devices.end(),
                                  [&](const auto& info) { return info.device.index == index; });
  if (!exists)
    throw DeviceError::unavailable(vulkan_name(index),
                                   devices.empty() ? std::string("no Vulkan driver or device was found")
                                                   : fmt::format("the last Vulkan device is {}",
                                                                 vulkan_name(devices.back().device.index)));
  return from(caldera::Device::vulkan(index));
}

Device Device::with_fallback(int index) {
  try {
    return vulkan(index);
  } catch (const caldera::DeviceError& error) {
    static std::once_flag said;
    std::call_once(
        said, [&] { std::fprintf(stderr, "caldera: warning: using the CPU, because %s\n", error.what()); });
    return cpu();
  }
}

Device Device::from(caldera::Device device) {
  if (device.kind == DeviceKind::null)
    throw DeviceError::unavailable("null", "it computes nothing, and eager calls need values");
  try {
    backend(device);
  } catch (const caldera::DeviceError& error) {
    throw DeviceError::initialization_failed(device.to_string(), error.what());
  }
  Device opened;
  opened.device_ = device;
  return opened;
}

bool Device::is_vulkan_available() { return caldera::is_vulkan_available(); }

DeviceInfo Device::info() const {
  DeviceInfo info;
  info.type = is_vulkan() ? DeviceType::Vulkan : DeviceType::Cpu;
  info.index = device_.index;
  info.name = backend(device_).info().name;
  info.vulkan_available = is_vulkan_available();
  return info;
}

}  // namespace caldera::v1
