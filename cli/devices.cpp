// caldera devices: what this machine can compute on.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/arguments/command.h"
#include "engine/runtime/runtime.h"

namespace caldera::cli {
namespace {

std::string human_bytes(std::uint64_t bytes) {
  return bytes < (std::uint64_t{1} << 30) ? fmt::format("{:.0f} MiB", static_cast<double>(bytes) / 0x1p20)
                                          : fmt::format("{:.1f} GiB", static_cast<double>(bytes) / 0x1p30);
}

// The CPU has no index; every Vulkan device is named with its own.
std::string device_id(Device device) {
  return device.kind == DeviceKind::vulkan ? fmt::format("vulkan:{}", device.index) : device.to_string();
}

/// What this process has of the device's memory, and may have. Null for a device that cannot be opened: it is
/// still listed.
nlohmann::ordered_json memory_of(Device device) {
  try {
    const DeviceCounters counters = device_counters(device);
    return {{"live_bytes", counters.live_bytes},
            {"reserved_bytes", counters.reserved_bytes},
            {"limit_bytes", counters.limit_bytes > 0 ? nlohmann::ordered_json(counters.limit_bytes)
                                                     : nlohmann::ordered_json()}};
  } catch (const Error&) {
    return nullptr;
  }
}

void print_names(const char* title, const nlohmann::ordered_json& names) {
  if (!names.empty())
    fmt::print("           {}{}\n", title, fmt::join(names.get<std::vector<std::string>>(), " "));
}

class DevicesCommand : public Command {
 public:
  DevicesCommand() : Command("devices", "List the devices that tensors can live on") {}

 protected:
  void add_options(Arguments&) override {}

  // Lists every device, whatever --device says; one that cannot be opened is still refused.
  void run() override {
    if (device_given()) open_device();
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const DeviceInfo& info : list_devices()) {
      list.push_back({{"id", device_id(info.device)},
                      {"name", info.name},
                      {"type", info.type},
                      {"driver", info.driver},
                      {"memory_bytes", info.memory_bytes},
                      {"features", info.features},
                      {"missing", info.missing},
                      {"profile", info.profile}});
      if (json()) list.back()["memory"] = memory_of(info.device);
    }
    if (json()) return print_json(list);
    for (const auto& device : list) {
      fmt::print("{:<10} {} ({}, {}", device["id"].get<std::string>(), device["name"].get<std::string>(),
                 device["type"].get<std::string>(), human_bytes(device["memory_bytes"].get<std::uint64_t>()));
      if (!device["driver"].get<std::string>().empty())
        fmt::print(", {}", device["driver"].get<std::string>());
      fmt::print(")\n");
      if (const auto profile = device["profile"].get<std::string>(); !profile.empty())
        fmt::print("           {}\n", profile);
      print_names("", device["features"]);
      print_names("without: ", device["missing"]);
    }
  }
};

}  // namespace

CommandPtr make_devices_command() { return std::make_unique<DevicesCommand>(); }

}  // namespace caldera::cli
