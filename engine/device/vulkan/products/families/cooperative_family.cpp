// "cooperative-32" to "cooperative-128": the units that GPUs have for products of small matrices
// (shaders/matmul/matmul_cooperative.glsl).
#include <fmt/core.h>

#include <algorithm>

#include "engine/device/vulkan/pipelines/embedded_shaders.h"
#include "engine/device/vulkan/products/product_family.h"

namespace caldera::vulkan {
namespace {

/// Registers of an invocation that may hold the sums.
constexpr std::int64_t kMostSums = 128;
/// Fewer columns waste what a matrix is wide.
constexpr std::int64_t kFewestColumns = 8;

class CooperativeFamily final : public ProductFamily {
 public:
  std::vector<ProductVariant> variants() const override {
    std::vector<ProductVariant> all;
    for (const int side : {32, 64, 128})
      all.push_back(
          {.name = fmt::format("cooperative-{}", side),
           .purpose = fmt::format("f16 matrices: tiles of {0} x {0} by four subgroups with cooperative "
                                  "matrices, sums in f32",
                                  side),
           .lanes = 4,
           .block_m = side,
           .block_n = side,
           .block_k = 32});
    return all;
  }

  std::string why_not(const ProductVariant& v, const ProductShape& shape,
                      const Capabilities& can) const override {
    if (!can.cooperative_matrix)
      return "needs cooperative matrices (VK_KHR_cooperative_matrix) of f16 with sums of f32";
    if (shape.a != DType::f16 || shape.b != DType::f16 || shape.type != DType::f32 || shape.mixed_memory)
      return "is for A and B in f16 with sums of f32";
    // Sums that one invocation keeps; more than that spill.
    const std::int64_t sums = std::int64_t{v.block_m} * v.block_n /
                              (v.lanes * std::int64_t{can.subgroup_size}) * (shape.scaled ? 2 : 1);
    if (sums > kMostSums) return fmt::format("needs {} registers for sums, where {} fit", sums, kMostSums);
    const MatrixShape& matrix = can.matrix_f16;
    const auto divides = [](std::uint32_t extent, int whole) {
      return static_cast<std::uint32_t>(whole) % extent == 0;
    };
    if (!divides(matrix.m, v.block_m / 2) || !divides(matrix.n, v.block_n / 2) ||
        !divides(matrix.k, v.block_k))
      return fmt::format("needs matrices that divide {} x {}, the device's are {} x {} x {}", v.block_m / 2,
                         v.block_n / 2, matrix.m, matrix.n, matrix.k);
    return {};
  }

  ProductExtents extents(const ProductVariant& v, const ProductShape& shape,
                         const Capabilities& can) const override {
    const std::int64_t lanes = v.lanes * std::int64_t{can.subgroup_size};
    const std::int64_t segments = shape.segments;
    const std::int64_t loads = ceil_div(std::int64_t{v.block_k} * v.block_m, lanes) +
                               ceil_div(std::int64_t{v.block_k} * v.block_n, lanes) + 2;
    return {
        .lanes = lanes,
        .rows = v.block_m,
        .columns = v.block_n,
        // Halves of A and B with a padding of 8 each, and of C a row of matrices for each of four subgroups.
        .shared_bytes = std::int64_t{2} * v.block_k * (v.block_m + v.block_n + 16) +
                        std::int64_t{4} * 4 * can.matrix_f16.m * (v.block_n / 2),
        .loops = 12 * segments + 12 + std::int64_t{v.block_m} * v.block_n / lanes +
                 (shape.k / v.block_k + segments) * (loads + v.block_k + 2)};
  }

  ProductKernel kernel(const ProductVariant& v, const ProductShape& shape, const Capabilities& can,
                       const ProductRates& /*rates*/) const override {
    const MatrixShape& matrix = can.matrix_f16;
    const auto number = [](auto extent) { return static_cast<std::int32_t>(extent); };
    return {
        .definitions = fmt::format("#define MATRIX_M {}\n#define MATRIX_N {}\n#define MATRIX_K {}\n"
                                   "#define BM {}\n#define BN {}\n#define BK {}\n",
                                   matrix.m, matrix.n, matrix.k, v.block_m, v.block_n, v.block_k),
        .constants = {number(extents(v, shape, can).lanes), layout_number(shape.a_layout),
                      layout_number(shape.b_layout), number(matrix.m), number(matrix.n), number(matrix.k)},
        .full_subgroups = true};
  }

  double cost(const ProductVariant& v, const ProductShape& shape, const Capabilities& can,
              const ProductRates& rates) const override {
    if (shape.k < kShortSum || shape.n <= kFewestColumns || shape.m <= kFewestColumns) return kNotMeant;
    const double per = 1.0 / v.block_m + 1.0 / v.block_n;
    const double each = 1 / rates.matrix_speed + per * (rates.load + 2 * rates.shared_load) +
                        rates.barrier / (v.block_k * 16.0);
    return reckoned_time(extents(v, shape, can), shape, rates, ceil_div(shape.k, v.block_k) * v.block_k,
                         each);
  }

  bool is_candidate(const ProductVariant& v, const ProductShape& shape) const override {
    return shape.m > v.block_m / 4 && shape.n > v.block_n / 4 && shape.k >= kShortSum;
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
