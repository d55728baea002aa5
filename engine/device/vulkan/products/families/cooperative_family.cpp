// "cooperative-32" to "cooperative-256x128" and "cooperative-32x16", "cooperative-16x32": the units that GPUs
// have for products of small matrices (shaders/matmul/matmul_cooperative.glsl).
#include <fmt/core.h>

#include <algorithm>

#include "engine/device/vulkan/pipelines/embedded_shaders.h"
#include "engine/device/vulkan/products/families/product_family.h"

namespace caldera::vulkan {
namespace {

/// Registers of an invocation that may hold the sums.
constexpr std::int64_t kMostSums = 128;
/// Of so few rows or columns most of a matrix is nothing.
constexpr std::int64_t kFewRows = 8;
/// The narrow tiles are for products with a side up to this.
constexpr std::int64_t kNarrow = 32;

const MatrixShape& matrices(const ProductShape& shape, const Capabilities& can) {
  return shape.a == DType::bf16 ? can.matrix_bf16 : can.matrix_f16;
}

bool is_narrow(const ProductVariant& v) { return std::min(v.block_m, v.block_n) < kNarrow; }

/// Larger tiles are taken only where a measurement says so.
constexpr int kMostUnmeasured = 128;

/// How many subgroups share a tile: along M, along N, and steps of K.
struct Grid {
  std::int64_t m = 1, n = 1, k = 1;
  std::int64_t subgroups() const { return m * n * k; }
};

/// As many of them as have a matrix each, in parts as square as can be; those left over share K.
Grid grid_of(const ProductVariant& v, const MatrixShape& matrix, const Capabilities& can) {
  const std::int64_t most = std::max<std::int64_t>(v.lanes / std::max<std::int64_t>(can.subgroup_size, 1), 1);
  Grid best;
  const auto border = [&](const Grid& g) { return v.block_m / g.m + v.block_n / g.n; };
  for (std::int64_t m = 1; m <= v.block_m / matrix.m; m *= 2) {
    for (std::int64_t n = 1; n <= v.block_n / matrix.n && m * n <= most; n *= 2) {
      const Grid grid{.m = m, .n = n};
      const bool better = grid.subgroups() > best.subgroups() ||
                          (grid.subgroups() == best.subgroups() && border(grid) < border(best));
      if (better) best = grid;
    }
  }
  while (2 * best.subgroups() <= most && 2 * best.k <= v.block_k / matrix.k) best.k *= 2;
  return best;
}

/// Of shared memory: a line of eights has one more.
std::int64_t tile_bytes(ProductLayout layout, std::int64_t across, std::int64_t along_k) {
  const bool turned = layout == ProductLayout::across_k;
  return 16 * (turned ? along_k * (across / 8 + 1) : across * (along_k / 8 + 1));
}

class CooperativeFamily final : public ProductFamily {
 public:
  std::vector<ProductVariant> variants() const override {
    struct Tile {
      int m, n, k, lanes;
      const char* name;
    };
    constexpr Tile kTiles[] = {{32, 16, 128, 256, "32x16"},
                               {16, 32, 128, 256, "16x32"},
                               {32, 32, 32, 128, "32"},
                               {64, 64, 32, 128, "64"},
                               {128, 128, 32, 256, "128"},
                               // Parts of 64 x 64 a subgroup: half the reads of shared memory for a product.
                               {256, 128, 32, 256, "256x128"}};
    std::vector<ProductVariant> all;
    for (const Tile& t : kTiles)
      all.push_back(
          {.name = fmt::format("cooperative-{}", t.name),
           .purpose = fmt::format("f16 or bf16 matrices{}: tiles of {} x {} by subgroups with cooperative "
                                  "matrices, sums in f32",
                                  std::min(t.m, t.n) < kNarrow ? " with a narrow side" : "", t.m, t.n),
           .lanes = t.lanes,
           .block_m = t.m,
           .block_n = t.n,
           .block_k = t.k});
    return all;
  }

  std::string why_not(const ProductVariant& v, const ProductShape& shape,
                      const Capabilities& can) const override {
    const bool is_bf16 = shape.a == DType::bf16;
    if ((!is_bf16 && shape.a != DType::f16) || shape.b != shape.a || shape.type != DType::f32 ||
        shape.mixed_memory)
      return "is for A and B in f16, or both in bf16, with sums of f32";
    const MatrixShape& matrix = matrices(shape, can);
    if (!matrix)
      return is_bf16 ? "needs cooperative matrices of bf16 (VK_KHR_shader_bfloat16) with sums of f32"
                     : "needs cooperative matrices (VK_KHR_cooperative_matrix) of f16 with sums of f32";
    const auto divides = [](std::uint32_t extent, int whole) {
      return static_cast<std::uint32_t>(whole) % extent == 0;
    };
    if (!divides(matrix.m, v.block_m) || !divides(matrix.n, v.block_n) || !divides(matrix.k, v.block_k))
      return fmt::format("needs matrices that divide {} x {}, the device's are {} x {} x {}", v.block_m,
                         v.block_n, matrix.m, matrix.n, matrix.k);
    // Sums that one invocation keeps, twice where several factors take totals; more than that spill.
    const Grid grid = grid_of(v, matrix, can);
    if (grid.subgroups() > can.max_subgroups)
      return fmt::format("needs workgroups of {} subgroups, the device has {}", grid.subgroups(),
                         can.max_subgroups);
    const bool totals = shape.scaled && shape.segments > 1;
    const std::int64_t sums =
        std::int64_t{v.block_m} * v.block_n / (grid.m * grid.n * can.subgroup_size) * (totals ? 2 : 1);
    if (sums > kMostSums) return fmt::format("needs {} registers for sums, where {} fit", sums, kMostSums);
    return {};
  }

  ProductExtents extents(const ProductVariant& v, const ProductShape& shape,
                         const Capabilities& can) const override {
    const MatrixShape& matrix = matrices(shape, can);
    if (!matrix) return {.rows = v.block_m, .columns = v.block_n};
    const Grid grid = grid_of(v, matrix, can);
    const std::int64_t lanes = grid.subgroups() * can.subgroup_size;
    const std::int64_t slab = std::int64_t{matrix.m} * matrix.n;
    const std::int64_t eights = ceil_div(std::int64_t{v.block_k} * v.block_m / 8, lanes) +
                                ceil_div(std::int64_t{v.block_k} * v.block_n / 8, lanes);
    const std::int64_t matrices_each = std::int64_t{v.block_m} * v.block_n / (slab * grid.m * grid.n);
    return {.lanes = lanes,
            .rows = v.block_m,
            .columns = v.block_n,
            .shared_bytes = tile_bytes(shape.a_layout, v.block_m, v.block_k) +
                            tile_bytes(shape.b_layout, v.block_n, v.block_k) + 4 * slab * grid.subgroups() +
                            16,
            .loops = 12 * shape.segments + 12 + matrices_each * (ceil_div(slab, can.subgroup_size) + 1) +
                     (shape.k / v.block_k + 2 * shape.segments) * (8 * eights + 2)};
  }

  ProductKernel kernel(const ProductVariant& v, const ProductShape& shape, const Capabilities& can,
                       const ProductRates& /*rates*/) const override {
    const MatrixShape& matrix = matrices(shape, can);
    const Grid grid = grid_of(v, matrix, can);
    const auto number = [](auto extent) { return static_cast<std::int32_t>(extent); };
    return {.definitions =
                fmt::format("#define LANES {}\n#define MATRIX_BITS {}\n"
                            "#define MATRIX_M {}\n#define MATRIX_N {}\n#define MATRIX_K {}\n"
                            "#define BM {}\n#define BN {}\n#define BK {}\n"
                            "#define SUBGROUPS_M {}\n#define SUBGROUPS_N {}\n#define SUBGROUPS_K {}\n"
                            "#define A_LAYOUT {}\n#define B_LAYOUT {}\n",
                            grid.subgroups() * can.subgroup_size, shape.a == DType::bf16 ? 32 : 16, matrix.m,
                            matrix.n, matrix.k, v.block_m, v.block_n, v.block_k, grid.m, grid.n, grid.k,
                            layout_number(shape.a_layout), layout_number(shape.b_layout)),
            .constants = {number(matrix.m), number(matrix.n), number(matrix.k)},
            .full_subgroups = true,
            .matrices = true};
  }

  double cost(const ProductVariant& v, const ProductShape& shape, const Capabilities& can,
              const ProductRates& rates) const override {
    if (shape.k < kShortSum || shape.n <= kFewRows || shape.m <= kFewRows) return kNotMeant;
    if (v.block_m > kMostUnmeasured) return kNotMeant;
    // Eights from memory, and matrices from shared memory.
    const double per = 1.0 / v.block_m + 1.0 / v.block_n;
    const double each = 1 / rates.matrix_speed + per * (rates.load + 2 * rates.shared_load) / 8 +
                        rates.barrier / (v.block_k * 16.0);
    return estimated_time(extents(v, shape, can), shape, rates, ceil_div(shape.k, v.block_k) * v.block_k,
                          each);
  }

  bool is_candidate(const ProductVariant& v, const ProductShape& shape) const override {
    if (shape.k < kShortSum || (is_narrow(v) && std::min(shape.m, shape.n) > kNarrow)) return false;
    return shape.m > v.block_m / 4 && shape.n > v.block_n / 4;
  }

  ProductShape typical_product() const override {
    ProductShape shape = ProductFamily::typical_product();
    shape.a = shape.b = DType::f16;
    return shape;
  }

  bool shares_tiles() const override { return true; }
  std::string text() const override { return whole_shader_text("matmul_cooperative"); }
};

}  // namespace

const ProductFamily& cooperative_family();
const ProductFamily& cooperative_family() {
  static const CooperativeFamily kFamily;
  return kFamily;
}

}  // namespace caldera::vulkan
