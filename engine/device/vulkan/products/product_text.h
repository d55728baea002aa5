// The text of a matrix product's shader, put together at run time from shaders/matmul/matmul*.glsl.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/base/hash.h"
#include "engine/device/vulkan/glsl/epilogue.h"
#include "engine/device/vulkan/glsl/region_shader.h"
#include "engine/device/vulkan/products/families/product_family.h"

namespace caldera::vulkan {

/// Says what a text is made for, besides the epilogue.
struct ProductForm {
  DType type = DType::f32;
  const ProductVariant* variant = nullptr;
  ProductKernel kernel;               // of it
  std::vector<DType> memory[2] = {};  // of A and of B, in every segment
  bool scaled = false;
  int scaled_segment = -1;  // the only one that is scaled; -1: none, or several
  DType scale = DType::f32;

  std::size_t segments() const { return memory[0].size(); }
  /// Whether A and B are `type` in memory.
  bool plain_memory() const;
  Hash128 hash() const;
};

/// The name of the type in the names of shaders/matmul/matmul_*.comp. Throws DTypeError for one without
/// kernels.
const char* product_type_name(DType type);

/// Eight bytes of the table that mean 1 as a segment's factor.
struct UnitScale {
  std::int64_t low, high;
};
UnitScale unit_scale(DType type);

/// The names of epilogues in the text.
inline constexpr const char* kEpilogueNames[] = {"epilogue", "following"};

/// The shader. `epilogues`: none; one; or two, of a product and of the one that follows it in its dispatch,
/// over the same space. Then each has a block, with the arguments of both epilogues, in that order.
/// `batch_rank`: coordinates of a batch that they take. `finish`: what the dispatch ends with; may be null.
std::string product_text(const ProductForm& form, std::span<const GlslEpilogue> epilogues, int batch_rank,
                         const GlslFinish* finish, const GlslOptions& options);

}  // namespace caldera::vulkan
