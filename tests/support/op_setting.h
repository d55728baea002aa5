// One body of tests for every device, with fusion on and off: forward values against plain loops in double.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "engine/runtime/runtime.h"
#include "engine/tensor/dispatch.h"
#include "tests/support/devices.h"
#include "tests/support/layouts.h"

namespace caldera::testing {

inline constexpr DType kNumericTypes[] = {DType::f32, DType::f64, DType::f16, DType::bf16, DType::i32,
                                          DType::i64, DType::i16, DType::i8,  DType::u8,   DType::u32};

struct OpSetting {
  Device device;
  bool fusion;
};

inline void PrintTo(const OpSetting& setting, std::ostream* out) {
  *out << setting.device.to_string() << (setting.fusion ? " fused" : " unfused");
}

inline std::vector<OpSetting> op_settings() {
  std::vector<OpSetting> all;
  for (const Device device : tested_devices()) {
    for (const bool fusion : {true, false}) all.push_back({device, fusion});
  }
  return all;
}

inline std::string op_setting_name(const ::testing::TestParamInfo<OpSetting>& info) {
  return std::string(info.param.device.kind == DeviceKind::vulkan ? "vulkan" : "cpu") +
         (info.param.fusion ? "_fused" : "_unfused");
}

/// A test on one device with one setting of fusion; every plan is proved before it runs.
class OpTest : public ::testing::TestWithParam<OpSetting> {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(GetParam().device);
    settings().fusion = GetParam().fusion;
    settings().verify = true;
    set_default_device(GetParam().device);
  }
  void TearDown() override {
    settings() = saved_settings_;
    set_default_device(saved_device_);
  }

  Device device() const { return GetParam().device; }
  bool is_vulkan() const { return device().kind == DeviceKind::vulkan; }
  bool supports(DType type) const { return backend(device()).supports(type); }
  /// The types of `wanted` that the device computes with.
  std::vector<DType> supported(std::initializer_list<DType> wanted) const {
    return supported({wanted.begin(), wanted.size()});
  }
  std::vector<DType> supported(std::span<const DType> wanted) const {
    std::vector<DType> out;
    for (const DType type : wanted) {
      if (supports(type)) out.push_back(type);
    }
    return out;
  }

 private:
  Settings saved_settings_ = settings();
  Device saved_device_ = default_device();
};

/// The value that an element of `type` holds when `value` is stored in it.
inline double stored(double value, DType type) {
  return dispatch(type, [&]<class T>() -> double {
    if constexpr (is_integral(dtype_of<T>())) {
      const auto low = static_cast<double>(facts(type).lowest),
                 high = static_cast<double>(facts(type).highest);
      return std::isnan(value) ? 0 : std::trunc(std::fmin(std::fmax(value, low), high));
    } else {
      return to_number(to_element<T>(value));
    }
  });
}

inline Host stored(Host host, DType type) {
  for (double& value : host.values) value = stored(value, type);
  return host;
}

/// A tensor of these values, which `type` must hold exactly (see stored).
inline LazyTensor upload(const Host& host, DType type, Device device) {
  return dispatch(type, [&]<class T>() {
    std::vector<Stored<T>> elements;
    elements.reserve(host.values.size());
    for (const double value : host.values) elements.push_back(to_element<T>(value));
    return LazyTensor::from_bytes(elements.data(), elements.size() * sizeof(T), type, host.shape, device);
  });
}

inline std::vector<double> download(const LazyTensor& x) {
  return dispatch(x.dtype(), [&]<class T>() {
    std::vector<double> values;
    values.reserve(static_cast<std::size_t>(x.numel()));
    for (const T element : x.to_vector<T>()) values.push_back(static_cast<double>(to_number(element)));
    return values;
  });
}

/// What integers of the type make of a whole number that does not fit them.
inline double wrapped(double value, DType type) {
  const auto low = static_cast<double>(facts(type).lowest);
  const double count = std::ldexp(1, 8 * static_cast<int>(size_of(type)));
  return value - count * std::floor((value - low) / count);
}

/// |actual - expected| <= absolute + relative |expected|. NaN equals NaN; infinities must be equal. Beside a
/// result of a 16-bit floating type, what is expected is rounded to it first; of an integer below 64 bits,
/// wrapped.
struct Within {
  double relative = 0;
  double absolute = 0;
};

/// `units` in the last place of a 16-bit type.
inline Within half_units(DType type, double units) {
  return type == DType::f16 ? Within{units * 0x1p-10, units * 0x1p-24} : Within{units * 0x1p-7, 0x1p-133};
}

/// An operation on `type` that is rounded once: the oracle's double is not rounded, so half a unit is left.
inline Within rounded_once(DType type) {
  if (type == DType::f32) return {0x1p-24, 0x1p-149};
  if (type == DType::f64) return {0x1p-52, 0};
  if (is_half(type)) return half_units(type, 1);  // twice, to f32 first: a tie may go the other way
  return {};
}

inline ::testing::AssertionResult agrees(const LazyTensor& actual, const Host& expected,
                                         const Within& within) {
  if (actual.shape() != expected.shape) {
    return ::testing::AssertionFailure()
           << "shape " << actual.shape().to_string() << ", expected " << expected.shape.to_string();
  }
  const std::vector<double> values = download(actual);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double a = values[i];
    double e = expected.values[i];
    if (is_half(actual.dtype())) e = stored(e, actual.dtype());
    if (is_integral(actual.dtype()) && size_of(actual.dtype()) < 8) e = wrapped(e, actual.dtype());
    if (std::isnan(e) ? std::isnan(a) : a == e) continue;
    if (std::isfinite(e) && std::abs(a - e) <= within.absolute + within.relative * std::abs(e)) continue;
    return ::testing::AssertionFailure() << "element " << i << " of " << actual.shape().to_string() << " "
                                         << name(actual.dtype()) << ": " << a << ", expected " << e;
  }
  return ::testing::AssertionSuccess();
}

/// An operation of a table and what it should give; a plan evaluates many, so that a device compiles few
/// kernels.
struct Pending {
  std::string name;
  LazyTensor result;
  Host expected;
  Within tolerance;
};

inline void check_all(const std::vector<Pending>& all) {
  std::vector<LazyTensor> results;
  for (const Pending& p : all) results.push_back(p.result);
  eval(results);
  for (const Pending& p : all) EXPECT_TRUE(agrees(p.result, p.expected, p.tolerance)) << p.name;
}

/// A random operand in a layout, and what its elements are.
struct Operand {
  LazyTensor tensor;
  Host host;
};

inline Operand random_operand(const Shape& shape, Layout layout, DType type, Device device, double low,
                              double high, bool both_signs, std::uint64_t seed) {
  const Shape base = base_shape(shape, layout);
  const Host host = stored(
      Host(base, random_values(base.numel(), low, high, both_signs && !is_unsigned(type), seed)), type);
  return {view_of(upload(host, type, device), shape, layout), seen_through(host, shape, layout)};
}

}  // namespace caldera::testing
