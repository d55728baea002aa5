#include "engine/device/cpu/host/cpu_info.h"

#include <hwy/targets.h>

#include <algorithm>
#include <fstream>
#include <string>

#include "engine/device/cpu/host/allocator.h"
#include "engine/device/cpu/host/openblas.h"
#include "engine/device/cpu/host/parallel.h"
#include "engine/device/cpu/machine_code/machine_code.h"

namespace caldera::cpu {
namespace {

std::string model_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "CPU";
}

/// Of a cache that the first core reaches, which the system has as "32768K": those of data and instructions
/// of the first level are 0 and 1, and the others follow. 0 where there is none.
std::int64_t kilobytes_of_cache(int index) {
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/size");
  std::int64_t size = 0;
  return file >> size && file.get() == 'K' ? size : 0;
}

}  // namespace

DeviceInfo describe_cpu() {
  DeviceInfo info;
  info.device = Device::cpu();
  info.name = model_name();
  info.type = "cpu";
  info.driver = openblas().available() ? openblas().config : "built-in kernels";
  while (!info.driver.empty() && info.driver.back() == ' ') info.driver.pop_back();
  info.memory_bytes = system_memory_bytes();
  const auto targets = hwy::SupportedTargets();
  const auto add = [&](auto bit, const char* feature) {
    if ((targets & bit) != 0) info.features.emplace_back(feature);
  };
  add(HWY_SSE4, "sse4");
  add(HWY_AVX2, "avx2");
  add(HWY_AVX3, "avx512");
  add(HWY_NEON, "neon");
  if (!machine_code_set().empty()) info.features.push_back("machine-code=" + machine_code_set());
  info.features.push_back("threads=" + std::to_string(cpu_threads()));
  return info;
}

std::int64_t second_level_cache_bytes() {
  static const std::int64_t kFound = [] {
    // Beyond that a cache is another level's, or belongs to several cores.
    constexpr std::int64_t kLeast = 256, kMost = 4096;
    const std::int64_t size = kilobytes_of_cache(2);
    return (size > 0 ? std::clamp(size, kLeast, kMost) : std::int64_t{1} << 10) << 10;
  }();
  return kFound;
}

std::int64_t last_level_cache_bytes() {
  static const std::int64_t kFound = [] {
    std::int64_t size = 0;
    for (int index = 0; index < 5; ++index) size = std::max(size, kilobytes_of_cache(index));
    return (size > 0 ? size : std::int64_t{32} << 10) << 10;
  }();
  return kFound;
}

}  // namespace caldera::cpu
