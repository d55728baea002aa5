// "shared-32" to "shared-128": tiles of A and B in shared memory (shaders/matmul/matmul_shared.glsl).
#include <fmt/core.h>

#include <algorithm>

#include "engine/device/vulkan/pipelines/embedded_shaders.h"
#include "engine/device/vulkan/products/families/product_family.h"

namespace caldera::vulkan {
namespace {

// Steps of K are this many elements further apart than a tile is wide: shaders/matmul/matmul_shared.glsl.
constexpr std::int64_t kPad = 4;

class SharedFamily final : public ProductFamily {
 public:
  std::vector<ProductVariant> variants() const override {
    return {{.name = "shared-32",
             .purpose = "small matrices: tiles of 32 x 32 in shared memory, 4 x 4 an invocation",
             .lanes = 64,
             .block_m = 32,
             .block_n = 32,
             .block_k = 16,
             .thread_m = 4,
             .thread_n = 4},
            {.name = "shared-64",
             .purpose = "tiles of 64 x 64 in shared memory, 8 x 4 an invocation",
             .lanes = 128,
             .block_m = 64,
             .block_n = 64,
             .block_k = 16,
             .thread_m = 8,
             .thread_n = 4},
            {.name = "shared-128",
             .purpose = "large matrices: tiles of 128 x 128 in shared memory, 8 x 8 an invocation",
             .lanes = 256,
             .block_m = 128,
             .block_n = 128,
             .block_k = 16,
             .thread_m = 8,
             .thread_n = 8}};
  }

  ProductExtents extents(const ProductVariant& v, const ProductShape& shape,
                         const Capabilities& /*can*/) const override {
    const auto element = std::max<std::int64_t>(4, static_cast<std::int64_t>(size_of(shape.type)));
    const std::int64_t segments = shape.segments;
    const std::int64_t loads = ceil_div(std::int64_t{v.block_k} * v.block_m, v.lanes) +
                               ceil_div(std::int64_t{v.block_k} * v.block_n, v.lanes) + 2;
    return {.lanes = v.lanes,
            .rows = v.block_m,
            .columns = v.block_n,
            .shared_bytes = element * v.block_k * (v.block_m + v.block_n + 2 * kPad),
            .loops = 12 * segments + 12 + (shape.k / v.block_k + segments) * (loads + v.block_k + 2) +
                     std::int64_t{v.thread_m} * v.thread_n / 4};
  }

  ProductKernel kernel(const ProductVariant& v, const ProductShape& shape, const Capabilities& /*can*/,
                       const ProductRates& /*rates*/) const override {
    const std::vector<std::int32_t> constants{v.lanes,
                                              v.block_m,
                                              v.block_n,
                                              v.block_k,
                                              v.thread_m,
                                              v.thread_n,
                                              layout_number(shape.a_layout),
                                              layout_number(shape.b_layout)};
    ProductKernel kernel{.constants = constants};
    if (shape.type == DType::f32) {
      kernel.embedded = "matmul_shared_{}";
      kernel.embedded_constants = constants;
    }
    return kernel;
  }

  double cost(const ProductVariant& v, const ProductShape& shape, const Capabilities& can,
              const ProductRates& rates) const override {
    if (shape.k < kShortSum) return kNotMeant;
    const auto per = [](int m, int n) { return 1.0 / m + 1.0 / n; };
    const double barriers = 2.0 / (v.block_k * v.thread_m * v.thread_n);
    const double each = 1 + per(v.thread_m, v.thread_n) * rates.shared_load +
                        per(v.block_m, v.block_n) * rates.load + barriers * rates.barrier;
    return estimated_time(extents(v, shape, can), shape, rates, ceil_div(shape.k, v.block_k) * v.block_k,
                          each);
  }

  bool is_candidate(const ProductVariant& v, const ProductShape& shape) const override {
    return shape.m > v.block_m / 4 && shape.n > v.block_n / 4 && shape.k >= kShortSum;
  }

  bool shares_tiles() const override { return true; }
  std::string text() const override { return whole_shader_text("matmul_shared"); }
};

}  // namespace

const ProductFamily& shared_family();
const ProductFamily& shared_family() {
  static const SharedFamily kFamily;
  return kFamily;
}

}  // namespace caldera::vulkan
