// Device: what exists can be used, what does not is refused by name, and the fall-back says so once.
// Errors: every kind keeps its kind and its values.
#include <utility>

#include "tests/eager/oracle.h"
#include "tests/support/devices.h"

namespace caldera::v1 {
namespace {

constexpr int kNoSuchIndex = 200;

TEST(EagerDevice, CpuIsAlwaysThere) {
  const Device device = Device::cpu();
  EXPECT_TRUE(device.is_cpu());
  EXPECT_FALSE(device.is_vulkan());
  EXPECT_EQ(device, Device());
  const DeviceInfo info = device.info();
  EXPECT_EQ(info.type, DeviceType::Cpu);
  EXPECT_EQ(info.index, 0);
  EXPECT_FALSE(info.name.empty());
  EXPECT_EQ(info.vulkan_available, Device::is_vulkan_available());
}

TEST(EagerDevice, VulkanIsThereOrRefused) {
  if (!Device::is_vulkan_available()) {
    EXPECT_THROW(Device::vulkan(0), DeviceError);
    return;
  }
  const Device device = Device::vulkan(0);
  EXPECT_TRUE(device.is_vulkan());
  EXPECT_EQ(device.info().type, DeviceType::Vulkan);
  EXPECT_EQ(device.info().index, 0);
  EXPECT_FALSE(device.info().name.empty());
  EXPECT_TRUE(device.info().vulkan_available);
  EXPECT_EQ(Device::with_fallback(0), device);
}

TEST(EagerDevice, RefusesWhatDoesNotExist) {
  for (const int index : {kNoSuchIndex, -1, 1000}) {
    try {
      Device::vulkan(index);
      ADD_FAILURE() << "opened device " << index;
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.kind(), DeviceError::Kind::Unavailable);
      EXPECT_NE(std::string(error.what()).find("vulkan:" + std::to_string(index)), std::string::npos)
          << error.what();
    }
  }
  EXPECT_THROW(Device::from(caldera::Device::null()), DeviceError);
}

TEST(EagerDevice, FallsBackWithOneWarning) {
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(Device::with_fallback(kNoSuchIndex).is_cpu());
  EXPECT_TRUE(Device::with_fallback(kNoSuchIndex).is_cpu());
  EXPECT_TRUE(Device::with_fallback(kNoSuchIndex + 1).is_cpu());
  const std::string said = ::testing::internal::GetCapturedStderr();
  // One warning a process: when the test is repeated in one, there is nothing left to say.
  static bool is_repeated = false;
  if (std::exchange(is_repeated, true)) {
    EXPECT_EQ(said, "");
    return;
  }
  const std::size_t first = said.find("vulkan:200");
  ASSERT_NE(first, std::string::npos) << said;
  EXPECT_NE(said.find("CPU"), std::string::npos) << said;
  EXPECT_EQ(said.find("vulkan:200", first + 1), std::string::npos) << said;
  EXPECT_EQ(said.find("vulkan:201"), std::string::npos) << said;
}

TEST(EagerErrors, KeepTheirKindAndTheirValues) {
  const InferenceError full = InferenceError::cache_full(512, 500);
  EXPECT_EQ(full.kind(), InferenceError::Kind::CacheFull);
  ASSERT_TRUE(full.cache_position().has_value());
  EXPECT_EQ(full.cache_position()->position, 512);
  EXPECT_EQ(full.cache_position()->max_len, 500);
  EXPECT_NE(std::string(full.what()).find("512 of 500"), std::string::npos);
  EXPECT_FALSE(InferenceError::failed("x").cache_position().has_value());

  const ModelError shape = ModelError::shape_mismatch("lm_head.weight", {2, 3}, {3, 2});
  EXPECT_EQ(shape.kind(), ModelError::Kind::ShapeMismatch);
  for (const char* part : {"lm_head.weight", "(2, 3)", "(3, 2)"})
    EXPECT_NE(std::string(shape.what()).find(part), std::string::npos) << shape.what();

  const CheckpointError load = CheckpointError::load_failed("/a/b", "it is a folder");
  EXPECT_EQ(load.kind(), CheckpointError::Kind::LoadFailed);
  EXPECT_NE(std::string(load.what()).find("/a/b"), std::string::npos);
  EXPECT_EQ(TrainingError::gradient("x").kind(), TrainingError::Kind::Gradient);
  EXPECT_EQ(ModelError::file_not_found("f").kind(), ModelError::Kind::FileNotFound);
  EXPECT_EQ(ModelError::incompatible_version("3", "2").kind(), ModelError::Kind::IncompatibleVersion);
}

TEST(EagerErrors, AreErrorsOfCaldera) {
  EXPECT_THROW(throw ModelError::invalid_config("x"), caldera::Error);
  EXPECT_THROW(throw TrainingError::state("x"), caldera::Error);
  EXPECT_THROW(throw InferenceError::sampling("x"), caldera::Error);
  EXPECT_THROW(throw CheckpointError::invalid_format("f", "x"), caldera::Error);
  EXPECT_THROW(throw DeviceError::allocation_failed("cpu", 1), caldera::DeviceError);
}

}  // namespace
}  // namespace caldera::v1
