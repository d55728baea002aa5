#include "engine/runtime/inspect/doctor.h"

#include <cstdlib>

#include "engine/check/doctor/families.h"
#include "engine/runtime/runtime.h"
#if CALDERA_HAS_VULKAN
#include "engine/device/vulkan/vulkan_backend.h"
#endif

namespace caldera::doctor {
namespace {

#if CALDERA_HAS_VULKAN
/// Sets a switch, which is read while a device is opened, for as long as it lives.
class SwitchedOn {
 public:
  SwitchedOn(const char* variable, const char* value) : variable_(variable) {
    if (const char* before = std::getenv(variable)) before_ = before;
    setenv(variable, value, 1);
  }
  ~SwitchedOn() { before_.empty() ? unsetenv(variable_) : setenv(variable_, before_.c_str(), 1); }
  SwitchedOn(const SwitchedOn&) = delete;
  SwitchedOn& operator=(const SwitchedOn&) = delete;

 private:
  const char* variable_;
  std::string before_;
};
#endif

OpenWith open_again([[maybe_unused]] Device device) {
#if CALDERA_HAS_VULKAN
  if (device.kind == DeviceKind::vulkan) {
    return [device](const char* variable, const char* value) {
      const SwitchedOn on(variable, value);
      return make_vulkan_backend(device.index);
    };
  }
#endif
  return {};
}

}  // namespace

std::vector<std::string> family_names(Device device) {
  std::vector<std::string> names;
  for (const Family& family : families(backend(device))) names.push_back(family.name);
  return names;
}

Report examine(Device device, std::string_view filter, const Progress& progress) {
  return examine(backend(device), {std::string(filter), progress, open_again(device)});
}

}  // namespace caldera::doctor
