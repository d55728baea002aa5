#include "training/memory/measured_rates.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/runtime/runtime.h"

namespace caldera {
namespace {

using detail::measured_rates;

bool is_power_of_two(double x) { return std::exp2(std::round(std::log2(x))) == x; }

/// Sets a limit of the CPU, and takes it away.
class LimitOfRates {
 public:
  explicit LimitOfRates(std::uint64_t bytes) { set_memory_limit(Device::cpu(), bytes); }
  ~LimitOfRates() { set_memory_limit(Device::cpu(), 0); }
  LimitOfRates(const LimitOfRates&) = delete;
  LimitOfRates& operator=(const LimitOfRates&) = delete;
};

// f64 first without room, then with it: no other test of this program asks for the rates of f64.
TEST(MeasuredRates, AreThoseOfAUsualDeviceWhereThereIsNoRoomToMeasure) {
  trim(Device::cpu());
  const LimitOfRates limit(device_counters(Device::cpu()).reserved_bytes + 1024);
  const KeepRates rates = measured_rates(Device::cpu(), DType::f64);
  EXPECT_EQ(rates.flops_per_second, KeepRates{}.flops_per_second);
  EXPECT_EQ(rates.bytes_per_second, KeepRates{}.bytes_per_second);
}

TEST(MeasuredRates, AreMeasuredOnceAndLeaveNoMemoryTaken) {
  trim(Device::cpu());
  const DeviceCounters before = device_counters(Device::cpu());
  const KeepRates rates = measured_rates(Device::cpu(), DType::f32);
  const DeviceCounters after = device_counters(Device::cpu());
  EXPECT_EQ(after.live_bytes, before.live_bytes);
  EXPECT_LE(after.reserved_bytes, before.reserved_bytes);
  // Any machine computes more than 10 M multiply-adds a second, and none 1e16.
  EXPECT_GT(rates.flops_per_second, 1e7);
  EXPECT_LT(rates.flops_per_second, 1e16);
  EXPECT_GT(rates.bytes_per_second, 1e7);
  EXPECT_LT(rates.bytes_per_second, 1e14);
  EXPECT_TRUE(is_power_of_two(rates.flops_per_second));
  EXPECT_TRUE(is_power_of_two(rates.bytes_per_second));

  const DeviceCounters kept = device_counters(Device::cpu());
  const KeepRates again = measured_rates(Device::cpu(), DType::f32);
  EXPECT_EQ(again.flops_per_second, rates.flops_per_second);
  EXPECT_EQ(again.bytes_per_second, rates.bytes_per_second);
  EXPECT_EQ(device_counters(Device::cpu()).submits, kept.submits);
}

}  // namespace
}  // namespace caldera
