// A family of kernels for matrix products: one interface, behind which everything is that is particular to
// one way of computing them. A family is a file in families/ and a line of product_families.cpp.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "engine/device/vulkan/open/capabilities.h"
#include "engine/device/vulkan/products/families/product_shape.h"

namespace caldera::vulkan {

class ProductFamily;

/// One configuration of a family. The numbers are for the family alone.
struct ProductVariant {
  std::string name;     // that pins it: CALDERA_TUNE
  std::string purpose;  // the products that it is for
  int lanes = 0;        // invocations a workgroup; of cooperative: subgroups
  // The tile of C (of subgroup: its most rows), the steps of K in shared memory, and an invocation's part.
  int block_m = 0, block_n = 0, block_k = 0, thread_m = 0, thread_n = 0;
  int columns = 0;                        // of vector: of C, a workgroup
  const ProductFamily* family = nullptr;  // set by the table
};

/// Says how fast a device is, as far as kernels for products are told apart by it. Times are in those of one
/// multiplication and addition of one invocation.
struct ProductRates {
  double busy_lanes;    // invocations that keep the device busy; fewer leave parts of it idle
  double load;          // of an element or a vector, from memory
  double shared_load;   // of an element or a vector, from shared memory
  double barrier;       // of a workgroup
  bool vector_loads;    // whether one of four elements is faster than four
  double matrix_speed;  // of multiplications in cooperative matrices
};

/// Workgroups of 128 below which most of a GPU is idle.
inline constexpr double kEnoughGroups = 64;
inline constexpr ProductRates kGpuRates{.busy_lanes = kEnoughGroups * 128,
                                        .load = 16,
                                        .shared_load = 2,
                                        .barrier = 0,
                                        .vector_loads = true,
                                        .matrix_speed = 8};
/// Rates of a processor that acts as a GPU: few cores, an invocation that meets a barrier is a coroutine.
inline constexpr ProductRates kProcessorRates{.busy_lanes = 16,
                                              .load = 30,
                                              .shared_load = 30,
                                              .barrier = 1e5,
                                              .vector_loads = true,
                                              .matrix_speed = 0.01};

/// Counts what a dispatch of a kernel takes and does.
struct ProductExtents {
  std::int64_t lanes = 1;              // invocations a workgroup, on the device
  std::int64_t rows = 1, columns = 1;  // of C, that a unit of work is
  std::int64_t units = 1;              // that a workgroup works on at once
  std::int64_t shared_bytes = 0;       // of a workgroup
  std::int64_t loops = 0;              // iterations of all loops of the busiest invocation, for one unit

  /// Units of the whole product.
  std::int64_t tiles(const ProductShape& shape) const;
  /// Returns `loops` with so many workgroups; at least as many as there are.
  std::int64_t iterations(const ProductShape& shape, std::int64_t groups) const;
};

/// The shader of a configuration for a shape on a device, but for what every product has (product_text.h).
struct ProductKernel {
  std::string definitions;                // ahead of the family's text
  std::vector<std::int32_t> constants;    // specialisation constants 0, 1, …
  bool full_subgroups = false;            // every subgroup has the device's size
  bool matrices = false;                  // cooperative ones; such modules have Vulkan's memory model
  bool adds = false, broadcasts = false;  // of subgroups
  // The shader that was compiled with Caldera for one segment of operands of the sums' type, without factors
  // and epilogue: its name, with the type's in the place of {}, and constants. Empty: there is none for the
  // type.
  std::string embedded;
  std::vector<std::int32_t> embedded_constants;
};

/// Immutable: any thread.
class ProductFamily {
 public:
  ProductFamily() = default;
  virtual ~ProductFamily() = default;
  ProductFamily(const ProductFamily&) = delete;
  ProductFamily& operator=(const ProductFamily&) = delete;

  /// Every configuration that some device may run, small tiles first.
  virtual std::vector<ProductVariant> variants() const = 0;

  /// Says what the device lacks of features for the product, or why it is not of the kind that the family
  /// computes; empty: nothing. Limits of workgroups, shared memory and loops are checked by `extents`.
  virtual std::string why_not(const ProductVariant& variant, const ProductShape& shape,
                              const Capabilities& can) const;

  virtual ProductExtents extents(const ProductVariant& variant, const ProductShape& shape,
                                 const Capabilities& can) const = 0;

  virtual ProductKernel kernel(const ProductVariant& variant, const ProductShape& shape,
                               const Capabilities& can, const ProductRates& rates) const = 0;

  /// Estimates how long it takes: only how variants compare matters. kNotMeant: for others than such
  /// products.
  virtual double cost(const ProductVariant& variant, const ProductShape& shape, const Capabilities& can,
                      const ProductRates& rates) const = 0;
  static constexpr double kNotMeant = std::numeric_limits<double>::infinity();

  /// Says whether measurements might prefer the variant for such a product: the tuner times these.
  virtual bool is_candidate(const ProductVariant& variant, const ProductShape& shape) const;

  /// Products that the family is for: what a device lacks for this one, it lacks for any.
  virtual ProductShape typical_product() const;

  /// Says whether elements of A and B are shared through memory of the workgroup.
  virtual bool shares_tiles() const { return false; }
  /// Says whether it is there to compute any product, and no faster than those that share tiles.
  virtual bool is_last_resort() const { return false; }

  /// The shader, but for what goes ahead of it: types, epilogue and the kernel's definitions.
  virtual std::string text() const = 0;
};

/// Shorter sums than this are not worth their way through shared memory.
inline constexpr std::int64_t kShortSum = 16;

/// Time of `steps` of K in all units of a product where every multiplication takes `each`, on a device that
/// is busy from rates.busy_lanes invocations on.
double estimated_time(const ProductExtents& extents, const ProductShape& shape, const ProductRates& rates,
                      std::int64_t steps, double each);

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The layout as shaders take it.
constexpr std::int32_t layout_number(ProductLayout layout) { return static_cast<std::int32_t>(layout); }

}  // namespace caldera::vulkan
