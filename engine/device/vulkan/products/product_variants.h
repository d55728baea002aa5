// The variants of the matrix product on a device, in one table: what each needs, what it is for, and which
// one is taken where nothing was measured.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "engine/device/vulkan/open/capabilities.h"
#include "engine/tensor/dtype.h"

namespace caldera::vulkan {

/// How an operand lies in memory: along K, or across it (rows of A, columns of B), is contiguous, or neither.
enum class ProductLayout : std::uint8_t { strided = 0, along_k = 1, across_k = 2 };

/// What the choice of a variant depends on.
struct ProductShape {
  DType type = DType::f32;                 // of the sums, and of C ahead of an epilogue
  DType a = DType::f32, b = DType::f32;    // in memory
  std::int64_t batches = 1, m = 0, n = 0;  // after merging: see ProductProblem
  std::int64_t k = 0;                      // of all segments together
  int segments = 1;
  bool epilogue = false;
  bool scaled = false;        // a segment has a factor
  bool mixed_memory = false;  // later segments have A or B in other types than `a` and `b`
  ProductLayout a_layout = ProductLayout::strided, b_layout = ProductLayout::strided;
};

/// The shader that a variant runs (shaders/matmul/matmul_<name>.glsl).
enum class ProductKernel : std::uint8_t { tile, shared, vector, subgroup, cooperative };

constexpr ProductKernel kProductKernels[] = {ProductKernel::tile, ProductKernel::shared,
                                             ProductKernel::vector, ProductKernel::subgroup,
                                             ProductKernel::cooperative};
/// "matmul_tile" and the like: the name of its text.
std::string_view shader_name(ProductKernel kernel);

struct ProductVariant {
  const char* name;
  const char* purpose;  // the products that it is for
  ProductKernel kernel;
  int lanes;  // invocations a workgroup; cooperative: with subgroups of 32
  // kernel shared, cooperative: the tile of C (subgroup: its most rows), the steps of K in shared memory, and
  // the part of an invocation.
  int block_m = 0, block_n = 0, block_k = 0, thread_m = 0, thread_n = 0;
  // kernel vector: columns of C a workgroup (it has up to kMostVectorRows rows), and whether sums go through
  // subgroups.
  int columns = 0;
  bool subgroups = false;

  /// Invocations a workgroup on the device.
  std::int64_t lanes_on(const Capabilities& can) const;
  /// Bytes of shared memory of a workgroup.
  std::int64_t shared_bytes(const ProductShape& shape, const Capabilities& can) const;
  /// Elements of C that a unit of work is: rows and columns. `tile`: of an invocation; else of a workgroup.
  std::int64_t rows(const ProductShape& shape) const;
  std::int64_t tile_columns() const;
  /// Of C.
  std::int64_t tiles(const ProductShape& shape) const;
  /// Iterations of all loops of the busiest invocation with so many workgroups; at least as many as there
  /// are.
  std::int64_t iterations(const ProductShape& shape, std::int64_t groups, const Capabilities& can) const;
};

constexpr std::int64_t kMostVectorRows = 8;

/// All of them, the plain one (which every device runs) first.
std::span<const ProductVariant> product_variants();
/// nullptr if there is none of that name.
const ProductVariant* find_product_variant(std::string_view name);

/// Why a device cannot run the variant for a product; empty if it can. Any variant that can is right for any
/// product.
std::string why_not(const ProductVariant& variant, const ProductShape& shape, const Capabilities& can);

/// A product that the variant is for: what a device lacks for it, it lacks for any.
ProductShape typical_product(const ProductVariant& variant);

/// The choice without measurements. `few_cores`: the device is a processor (see Context).
const ProductVariant& default_product_variant(const ProductShape& shape, const Capabilities& can,
                                              bool few_cores);

/// Whether measurements might prefer the variant for such a product: the tuner times these.
bool is_candidate(const ProductVariant& variant, const ProductShape& shape);

}  // namespace caldera::vulkan
