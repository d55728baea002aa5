// CALDERA_VALIDATION=2: the validation layer also says what it holds for bad practice. Whatever it says has
// been mended, or stands in the table of accepted messages with the reason. A program of its own, since a
// process has one instance.
#ifdef CALDERA_TEST_VALIDATION
#include <gtest/gtest.h>

#include <cstdlib>
#include <string_view>

#include "engine/caldera.h"
#include "engine/device/vulkan/open/capabilities.h"
#include "engine/device/vulkan/open/instance.h"
#include "tests/support/devices.h"
#include "tests/support/fault_workload.h"

namespace caldera::testing {
namespace {

[[maybe_unused]] const int kPractices = ::setenv("CALDERA_VALIDATION", "2", 1);

class BestPractices : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Memory, BestPractices, ::testing::Bool(),
                         [](const auto& tested) { return tested.param ? "staged" : "mapped"; });

TEST_P(BestPractices, AWorkloadGivesNoMessageThatIsNotAccepted) {
  CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
  ::setenv("CALDERA_VULKAN_STAGING", GetParam() ? "1" : "0", 1);
  reopen_device(Device::vulkan(0));
  ::unsetenv("CALDERA_VULKAN_STAGING");
  const WorkloadResults first = run_fault_workload(Device::vulkan(0));
  EXPECT_EQ(run_fault_workload(Device::vulkan(0)), first);
  reopen_device(Device::vulkan(0));  // what is wrong at the end of a device is said here
  EXPECT_EQ(vulkan::validation_messages(), 0U);
  EXPECT_GT(vulkan::accepted_validation_messages(), 0U) << "the layer says nothing: was it asked?";
}

TEST(AcceptedMessages, HaveAReasonEach) {
  for (const vulkan::AcceptedMessage& message : vulkan::accepted_messages()) {
    EXPECT_NE(std::string_view(message.id), "");
    EXPECT_GT(std::string_view(message.reason).size(), 40U) << message.id;
  }
}

}  // namespace
}  // namespace caldera::testing
#endif
