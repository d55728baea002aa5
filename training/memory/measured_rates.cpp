#include "training/memory/measured_rates.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <vector>

#include "engine/runtime/runtime.h"
#include "ops/core/creation.h"
#include "ops/linalg/matmul.h"

namespace caldera::detail {
namespace {

// Long enough that what a call costs by itself does not count.
constexpr double kLongEnough = 2e-3;
// Of the largest square that is tried.
constexpr std::int64_t kMostRows = 4096;

bool has_room(Device device, std::int64_t elements, DType dtype) {
  const DeviceCounters now = device_counters(device);
  // Blocks may have room to spare: twice what the tensors take.
  const std::uint64_t bytes = 2 * static_cast<std::uint64_t>(elements) * size_of(dtype);
  return now.limit_bytes == 0 || now.reserved_bytes + bytes <= now.limit_bytes;
}

double seconds_of(const std::function<LazyTensor()>& build) {
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < 3; ++round) {  // the first compiles
    const auto begin = std::chrono::steady_clock::now();
    eval({build()});
    synchronize();
    least = std::min(least, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return least;
}

/// Work a second of the smallest square that takes long enough; nothing where there is no room for such.
std::optional<double> rate_of(Device device, DType dtype,
                              const std::function<LazyTensor(const LazyTensor&)>& compute,
                              const std::function<double(double rows)>& work) {
  for (std::int64_t rows = 256; rows <= kMostRows; rows *= 2) {
    if (!has_room(device, 2 * rows * rows, dtype)) return std::nullopt;
    const LazyTensor x = full({rows, rows}, 0.5, dtype, device);
    eval({x});
    const double seconds = seconds_of([&] { return compute(x); });
    if (seconds >= kLongEnough || rows == kMostRows) return work(static_cast<double>(rows)) / seconds;
  }
  return std::nullopt;
}

std::optional<KeepRates> measure(Device device, DType dtype) {
  const auto flops = rate_of(
      device, dtype, [](const LazyTensor& x) { return matmul(x, x); },
      [](double rows) { return 2 * rows * rows * rows; });
  const auto bytes = rate_of(
      device, dtype, [](const LazyTensor& x) { return x * 1.5; },
      [&](double rows) { return rows * rows * static_cast<double>(size_of(dtype)); });
  trim(device);
  if (!flops || !bytes) return std::nullopt;
  const auto rounded = [](double rate) { return std::exp2(std::round(std::log2(rate))); };
  return KeepRates{.flops_per_second = rounded(*flops), .bytes_per_second = rounded(*bytes)};
}

}  // namespace

KeepRates measured_rates(Device device, DType dtype) {
  struct Known {
    Device device;
    DType dtype;
    KeepRates rates;
  };
  static std::mutex mutex;
  static std::vector<Known> all;
  const std::scoped_lock lock(mutex);
  for (const Known& known : all) {
    if (known.device == device && known.dtype == dtype) return known.rates;
  }
  const std::optional<KeepRates> rates = measure(device, dtype);
  if (!rates) return {};
  all.push_back({.device = device, .dtype = dtype, .rates = *rates});
  return *rates;
}

}  // namespace caldera::detail
