// "plain": any product, of any type, without shared memory (shaders/matmul/matmul_tile.glsl).
#include <fmt/core.h>

#include "engine/device/vulkan/pipelines/embedded_shaders.h"
#include "engine/device/vulkan/products/families/product_family.h"

namespace caldera::vulkan {
namespace {

// As in shaders/matmul/matmul_tile.glsl.
constexpr std::int64_t kColumns = 4;
constexpr std::int64_t kRows = 8;
constexpr std::int64_t kBlock = 4;
constexpr std::int64_t kTileLanes = 64;

class TileFamily final : public ProductFamily {
 public:
  std::vector<ProductVariant> variants() const override {
    return {{.name = "plain",
             .purpose = "any product, of any type: 8 x 4 elements an invocation, no shared memory",
             .lanes = static_cast<int>(kTileLanes)}};
  }

  ProductExtents extents(const ProductVariant& /*variant*/, const ProductShape& shape,
                         const Capabilities& /*can*/) const override {
    // Batch coordinates: five at most, for two views a segment and the epilogue.
    const std::int64_t segments = shape.segments;
    return {.lanes = kTileLanes,
            .rows = shape.m < kColumns ? 1 : kRows,
            .columns = kColumns,
            .units = kTileLanes,
            .loops = 12 * segments + 12 + shape.k / 4 + 3 * segments + kRows};
  }

  ProductKernel kernel(const ProductVariant& variant, const ProductShape& shape, const Capabilities& can,
                       const ProductRates& rates) const override {
    const std::int64_t rows = extents(variant, shape, can).rows;
    // Vectors where they are all inside and worth it.
    const auto usable = [&](ProductLayout layout, std::int64_t extent) {
      const bool outside = layout == ProductLayout::across_k && extent < kBlock;
      return layout_number(rates.vector_loads && !outside ? layout : ProductLayout::strided);
    };
    const std::int32_t a = usable(shape.a_layout, rows == 1 ? 0 : shape.m);
    const std::int32_t b = usable(shape.b_layout, shape.n);
    return {.definitions =
                fmt::format("#define LANES {}\n#define ROWS {}\n#define A_LAYOUT {}\n#define B_LAYOUT {}\n",
                            kTileLanes, rows, a, b),
            .embedded = rows == 1 ? "matmul_row_{}" : "matmul_{}",
            .embedded_constants = {a, b}};
  }

  double cost(const ProductVariant& variant, const ProductShape& shape, const Capabilities& can,
              const ProductRates& rates) const override {
    ProductExtents e = extents(variant, shape, can);
    // Invocations come in eights at least.
    e.columns *= 8;
    e.units /= 8;
    const double loads = 1 / static_cast<double>(e.rows) + 1.0 / kColumns;
    return estimated_time(e, shape, rates, shape.k, 1 + loads * rates.load);
  }

  bool is_last_resort() const override { return true; }
  std::string text() const override { return whole_shader_text("matmul_tile"); }
};

}  // namespace

const ProductFamily& tile_family();
const ProductFamily& tile_family() {
  static const TileFamily kFamily;
  return kFamily;
}

}  // namespace caldera::vulkan
