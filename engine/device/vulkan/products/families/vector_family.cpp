// "vector-k-tree", "vector-n": few rows of C (shaders/matmul/matmul_vector.glsl).
#include <algorithm>

#include "engine/device/vulkan/pipelines/embedded_shaders.h"
#include "engine/device/vulkan/products/families/product_family.h"

namespace caldera::vulkan {
namespace {

constexpr std::int64_t kMostVectorRows = 8;
/// Times what a load takes whose neighbours are elsewhere.
constexpr double kScatteredLoads = 8;

class VectorFamily final : public ProductFamily {
 public:
  std::vector<ProductVariant> variants() const override {
    return {
        {.name = "vector-k-tree",
         .purpose = "up to 8 rows, B contiguous along K: a column a workgroup, sums through shared memory",
         .lanes = 64,
         .columns = 1},
        {.name = "vector-n",
         .purpose = "up to 8 rows, or few results of long sums: 32 columns a workgroup, whose K is cut in 8",
         .lanes = 256,
         .columns = 32}};
  }

  ProductExtents extents(const ProductVariant& v, const ProductShape& shape,
                         const Capabilities& /*can*/) const override {
    std::int64_t rows = 1;
    while (rows < std::min(shape.m, kMostVectorRows)) rows *= 2;
    const auto element = std::max<std::int64_t>(4, static_cast<std::int64_t>(size_of(shape.type)));
    const std::int64_t segments = shape.segments;
    return {.lanes = v.lanes,
            .rows = rows,
            .columns = v.columns,
            .shared_bytes = element * v.lanes * rows,
            .loops = 12 * segments + 12 + shape.k / (v.lanes / v.columns) + 4 * segments + 16 + rows};
  }

  ProductKernel kernel(const ProductVariant& v, const ProductShape& shape, const Capabilities& can,
                       const ProductRates& /*rates*/) const override {
    const std::vector<std::int32_t> constants{v.lanes, static_cast<std::int32_t>(extents(v, shape, can).rows),
                                              v.columns};
    ProductKernel kernel{.constants = constants};
    if (shape.type == DType::f32) {
      kernel.embedded = "matmul_vector_{}";
      kernel.embedded_constants = constants;
    }
    return kernel;
  }

  double cost(const ProductVariant& v, const ProductShape& shape, const Capabilities& can,
              const ProductRates& rates) const override {
    if (shape.k < kShortSum) return kNotMeant;
    const ProductExtents e = extents(v, shape, can);
    const bool along_k = v.columns == 1;
    const bool meant = along_k == (shape.b_layout == ProductLayout::along_k);
    // Elements of A are in a cache (along K, four at once); those of B come once.
    const double loads =
        (meant ? 0.25 : kScatteredLoads) / static_cast<double>(e.rows) + (along_k ? 0.25 : 0.5);
    return estimated_time(e, shape, rates, shape.k, 1 + loads * rates.load) +
           estimated_time(e, shape, rates, 1, 8 * rates.barrier);
  }

  bool is_candidate(const ProductVariant& /*variant*/, const ProductShape& shape) const override {
    // Each row of tiles reads B again.
    return shape.m <= 4 * kMostVectorRows && shape.k >= kShortSum;
  }

  std::string text() const override { return whole_shader_text("matmul_vector"); }
};

}  // namespace

const ProductFamily& vector_family();
const ProductFamily& vector_family() {
  static const VectorFamily kFamily;
  return kFamily;
}

}  // namespace caldera::vulkan
