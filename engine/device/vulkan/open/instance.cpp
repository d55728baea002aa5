#include "engine/device/vulkan/open/instance.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string_view>

#include "engine/base/error.h"
#include "engine/device/environment.h"
#include "engine/device/vulkan/open/capabilities.h"

namespace caldera::vulkan {
namespace {

constexpr const char* kValidationLayer = "VK_LAYER_KHRONOS_validation";
constexpr const char* kPortabilityEnumeration = "VK_KHR_portability_enumeration";  // MoltenVK

std::atomic<std::uint64_t> message_count{0};
std::atomic<std::uint64_t> accepted_count{0};

bool is_accepted(std::string_view id, std::string_view message) {
  return std::ranges::any_of(accepted_messages(), [&](const AcceptedMessage& m) {
    return id == m.id && message.find(m.mentions) != std::string_view::npos;
  });
}

VKAPI_ATTR VkBool32 VKAPI_CALL on_message(VkDebugUtilsMessageSeverityFlagBitsEXT,
                                          VkDebugUtilsMessageTypeFlagsEXT,
                                          const VkDebugUtilsMessengerCallbackDataEXT* data, void*) {
  if (data->pMessageIdName != nullptr && is_accepted(data->pMessageIdName, data->pMessage)) {
    ++accepted_count;
    return VK_FALSE;
  }
  ++message_count;
  std::fprintf(stderr, "caldera: validation: %s\n", data->pMessage);
  return VK_FALSE;
}

/// How much the validation layer checks: see instance.h.
enum class Validation : std::uint8_t { none, standard, best_practices };
constexpr int kMostValidation = 2;

Validation validation_wanted() {
  return static_cast<Validation>(environment_number("CALDERA_VALIDATION", 0, 0, kMostValidation));
}

bool has_layer(std::string_view name) {
  std::uint32_t count = 0;
  vkEnumerateInstanceLayerProperties(&count, nullptr);
  std::vector<VkLayerProperties> layers(count);
  vkEnumerateInstanceLayerProperties(&count, layers.data());
  for (const VkLayerProperties& layer : layers) {
    if (name == layer.layerName) return true;
  }
  return false;
}

bool has_extension(std::string_view name) {
  std::uint32_t count = 0;
  vkEnumerateInstanceExtensionProperties(nullptr, &count, nullptr);
  std::vector<VkExtensionProperties> extensions(count);
  vkEnumerateInstanceExtensionProperties(nullptr, &count, extensions.data());
  for (const VkExtensionProperties& extension : extensions) {
    if (name == extension.extensionName) return true;
  }
  return false;
}

VkInstance create() {
  if (volkInitialize() != VK_SUCCESS || volkGetInstanceVersion() < VK_API_VERSION_1_2) return VK_NULL_HANDLE;

  std::vector<const char*> layers, extensions;
  VkInstanceCreateFlags flags = 0;
  const Validation wanted = validation_wanted();
  const bool validation = wanted != Validation::none;
  if (validation) {
    if (!has_layer(kValidationLayer))
      throw DeviceError(
          "CALDERA_VALIDATION is set, but VK_LAYER_KHRONOS_validation is not installed (package "
          "vulkan-validationlayers)");
    layers.push_back(kValidationLayer);
    extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
    extensions.push_back(VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME);
  }
  if (has_extension(kPortabilityEnumeration)) {
    extensions.push_back(kPortabilityEnumeration);
    flags |= VK_INSTANCE_CREATE_ENUMERATE_PORTABILITY_BIT_KHR;
  }

  const bool practices = wanted == Validation::best_practices;
  VkDebugUtilsMessageTypeFlagsEXT types = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT;
  if (practices) types |= VK_DEBUG_UTILS_MESSAGE_TYPE_PERFORMANCE_BIT_EXT;
  const VkDebugUtilsMessengerCreateInfoEXT messenger{
      .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
      .messageSeverity =
          VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
      .messageType = types,
      .pfnUserCallback = on_message};
  const VkValidationFeatureEnableEXT enables[] = {VK_VALIDATION_FEATURE_ENABLE_SYNCHRONIZATION_VALIDATION_EXT,
                                                  VK_VALIDATION_FEATURE_ENABLE_BEST_PRACTICES_EXT};
  const VkValidationFeaturesEXT features{.sType = VK_STRUCTURE_TYPE_VALIDATION_FEATURES_EXT,
                                         .pNext = &messenger,
                                         .enabledValidationFeatureCount = practices ? 2U : 1U,
                                         .pEnabledValidationFeatures = enables};
  const VkApplicationInfo application{.sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
                                      .pApplicationName = "caldera",
                                      .pEngineName = "caldera",
                                      .apiVersion = VK_API_VERSION_1_2};
  const VkInstanceCreateInfo info{.sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
                                  .pNext = validation ? &features : nullptr,
                                  .flags = flags,
                                  .pApplicationInfo = &application,
                                  .enabledLayerCount = static_cast<std::uint32_t>(layers.size()),
                                  .ppEnabledLayerNames = layers.data(),
                                  .enabledExtensionCount = static_cast<std::uint32_t>(extensions.size()),
                                  .ppEnabledExtensionNames = extensions.data()};
  VkInstance handle = VK_NULL_HANDLE;
  if (vkCreateInstance(&info, nullptr, &handle) != VK_SUCCESS) return VK_NULL_HANDLE;
  volkLoadInstanceOnly(handle);
  if (validation) {
    VkDebugUtilsMessengerEXT ignored = VK_NULL_HANDLE;
    check(vkCreateDebugUtilsMessengerEXT(handle, &messenger, nullptr, &ignored),
          "creating the debug messenger");
  }
  return handle;
}

}  // namespace

VkInstance instance() {
  static VkInstance handle = create();
  return handle;
}

std::uint64_t validation_messages() { return message_count.load(); }
std::uint64_t accepted_validation_messages() { return accepted_count.load(); }

}  // namespace caldera::vulkan
