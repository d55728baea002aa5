// Which variant of the matrix product a device takes: measured once for a class of shapes, and kept on disk.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "engine/device/vulkan/products/product_variants.h"

namespace caldera::vulkan {

/// Holds what CALDERA_TUNE says:
///   unset    measure on GPUs; on software devices, whose times say nothing, take the table's choice
///   0, 1     never measure; always measure
///   a name   of a variant: taken wherever the device can run it
///   a path   (anything with a slash) of a file as the tuner writes it: what it says; never measure
struct TuneSetting {
  bool measure = false;
  const ProductVariant* pinned = nullptr;
  std::filesystem::path choices;  // instead of the device's own file; read only
  /// `measured`: what unset means (DeviceProfile). Throws ValueError naming the variants for any other value.
  static TuneSetting from_environment(bool measured);
};

/// Any thread. Measures one product at a time.
///
/// A class costs as much as can be spared: the table's choice is timed first; another variant is given up as
/// soon as it has shown to take twice as long as the best so far; after two seconds the best so far it is.
/// `plain` is not tried where a variant with tiles in shared memory runs.
class ProductTuner {
 public:
  /// Seconds that the variant takes for the product; nothing where it could not be measured. May end as soon
  /// as it is known to be more than `stop_at`: the answer then is some number above that.
  using Time = std::function<std::optional<double>(const ProductVariant&, double stop_at)>;
  /// Seconds since any moment.
  using Clock = std::function<double()>;

  /// `identity`: of device and driver (see device_identity.h). Choices are kept in `directory`, if it is not
  /// empty. The file: a line with format, identity and a digest of the shaders, all of which have to match;
  /// then a line a class, `<class> <variant>`. Lines that are not so, and variants that the device cannot
  /// run, count for nothing.
  ProductTuner(TuneSetting setting, std::string identity, const std::filesystem::path& directory,
               Clock clock = steady_seconds);

  const ProductVariant& choose(const ProductShape& shape, const Capabilities& can, const ProductRates& rates,
                               const Time& time);

  /// Why `choose` does not give the variant that CALDERA_TUNE pins; empty if it does, or none is pinned.
  std::string why_not_pinned(const ProductShape& shape, const Capabilities& can) const {
    return setting_.pinned != nullptr ? why_not(*setting_.pinned, shape, can) : std::string();
  }

  /// Classes that were measured since it was made.
  std::uint64_t measured() const { return measured_.load(std::memory_order_relaxed); }
  const std::filesystem::path& file() const { return file_; }

  /// The class of a shape: extents in powers of two, types, layouts. No spaces.
  static std::string class_of(const ProductShape& shape);

 private:
  static double steady_seconds();
  const ProductVariant* fastest(const ProductShape& shape, const Capabilities& can,
                                const ProductVariant& usual, const Time& time, bool& complete) const;
  /// Whether the file is one of this version (and, where it is not the user's own, of this device).
  bool load(const std::filesystem::path& file);
  void store() const;

  TuneSetting setting_;
  Clock clock_;
  std::string header_;
  std::filesystem::path file_;
  std::mutex mutex_;
  std::map<std::string, const ProductVariant*, std::less<>> choices_;
  // Choices for classes whose time was up before all candidates had run: for this process, never stored.
  std::map<std::string, const ProductVariant*, std::less<>> hasty_;
  std::atomic<std::uint64_t> measured_{0};
};

}  // namespace caldera::vulkan
