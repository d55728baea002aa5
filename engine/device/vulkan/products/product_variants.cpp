#include "engine/device/vulkan/products/product_variants.h"

#include <fmt/core.h>

#include <algorithm>

namespace caldera::vulkan {
namespace {

// As in shaders/matmul/matmul_tile.glsl.
constexpr std::int64_t kTileColumns = 4;
constexpr std::int64_t kTileRows = 8;
// As in shaders/matmul/matmul_subgroup.glsl.
constexpr std::int64_t kSubgroupSteps = 8;
// Steps of K lie this many elements further apart than a tile is wide: shaders/matmul/matmul_shared.glsl.
constexpr std::int64_t kPad = 4;

// Sorted by how much of C a workgroup takes, which is_candidate and the default choice rely on.
constexpr ProductVariant kVariants[] = {
    {.name = "plain",
     .purpose = "any product, of any type: 8 x 4 elements an invocation, no shared memory",
     .kernel = ProductKernel::tile,
     .lanes = 64},
    {.name = "subgroup",
     .purpose = "what software devices take: 16 x 32 elements a subgroup of 8, which passes the elements of "
                "A around",
     .kernel = ProductKernel::subgroup,
     .lanes = 8,
     .block_m = 16,
     .block_n = 32},
    {.name = "vector-k",
     .purpose = "up to 8 rows, B contiguous along K: a column a workgroup, sums over subgroups",
     .kernel = ProductKernel::vector,
     .lanes = 64,
     .columns = 1,
     .subgroups = true},
    {.name = "vector-k-tree",
     .purpose = "the same where there is no subgroup arithmetic: sums through shared memory",
     .kernel = ProductKernel::vector,
     .lanes = 64,
     .columns = 1},
    {.name = "vector-n",
     .purpose = "up to 8 rows, or few results of long sums: 32 columns a workgroup, whose K is cut in 8",
     .kernel = ProductKernel::vector,
     .lanes = 256,
     .columns = 32},
    {.name = "shared-32",
     .purpose = "small matrices: tiles of 32 x 32 in shared memory, 4 x 4 an invocation",
     .kernel = ProductKernel::shared,
     .lanes = 64,
     .block_m = 32,
     .block_n = 32,
     .block_k = 16,
     .thread_m = 4,
     .thread_n = 4},
    {.name = "shared-64",
     .purpose = "tiles of 64 x 64 in shared memory, 8 x 4 an invocation",
     .kernel = ProductKernel::shared,
     .lanes = 128,
     .block_m = 64,
     .block_n = 64,
     .block_k = 16,
     .thread_m = 8,
     .thread_n = 4},
    {.name = "shared-128",
     .purpose = "large matrices: tiles of 128 x 128 in shared memory, 8 x 8 an invocation",
     .kernel = ProductKernel::shared,
     .lanes = 256,
     .block_m = 128,
     .block_n = 128,
     .block_k = 16,
     .thread_m = 8,
     .thread_n = 8},
    {.name = "cooperative-32",
     .purpose =
         "f16 matrices, small: tiles of 32 x 32 by four subgroups with cooperative matrices, sums in f32",
     .kernel = ProductKernel::cooperative,
     .lanes = 128,
     .block_m = 32,
     .block_n = 32,
     .block_k = 32},
    {.name = "cooperative-64",
     .purpose = "the same with tiles of 64 x 64",
     .kernel = ProductKernel::cooperative,
     .lanes = 128,
     .block_m = 64,
     .block_n = 64,
     .block_k = 32},
    {.name = "cooperative-128",
     .purpose = "the same with tiles of 128 x 128, for large matrices",
     .kernel = ProductKernel::cooperative,
     .lanes = 128,
     .block_m = 128,
     .block_n = 128,
     .block_k = 32},
};

/// Fewer workgroups than this leave most of a GPU idle.
constexpr std::int64_t kEnoughGroups = 64;
/// Registers of an invocation that may hold the sums of cooperative matrices.
constexpr std::int64_t kMostSums = 128;
/// Below it there is no smaller one to fall back to.
constexpr int kSmallestCooperative = 32;
/// Shorter sums than this are not worth their way through shared memory.
constexpr std::int64_t kShortSum = 16;

/// Of fewer rows too little is passed around.
constexpr std::int64_t kBroadcastRows = 4;

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

std::string_view shader_name(ProductKernel kernel) {
  switch (kernel) {
    case ProductKernel::tile:
      return "matmul_tile";
    case ProductKernel::shared:
      return "matmul_shared";
    case ProductKernel::vector:
      return "matmul_vector";
    case ProductKernel::subgroup:
      return "matmul_subgroup";
    case ProductKernel::cooperative:
      return "matmul_cooperative";
  }
  return {};
}

std::int64_t ProductVariant::shared_bytes(const ProductShape& shape, const Capabilities& can) const {
  const auto element = std::max<std::int64_t>(4, static_cast<std::int64_t>(size_of(shape.type)));
  switch (kernel) {
    case ProductKernel::tile:
    case ProductKernel::subgroup:
      return 0;
    case ProductKernel::cooperative:
      // Halves of A and B with a padding of 8 each, and of C a row of matrices for each of four subgroups.
      return std::int64_t{2} * block_k * (block_m + block_n + 16) +
             std::int64_t{4} * 4 * can.matrix_f16.m * (block_n / 2);
    case ProductKernel::shared:
      return element * block_k * (block_m + block_n + 2 * kPad);
    case ProductKernel::vector:
      return element * lanes * rows(shape);
  }
  return 0;
}

std::int64_t ProductVariant::rows(const ProductShape& shape) const {
  switch (kernel) {
    case ProductKernel::tile:
      return shape.m < kTileColumns ? 1 : kTileRows;
    case ProductKernel::shared:
    case ProductKernel::cooperative:
      return block_m;
    case ProductKernel::subgroup:
    case ProductKernel::vector:
      break;
  }
  const std::int64_t most = kernel == ProductKernel::subgroup ? block_m : kMostVectorRows;
  std::int64_t rows = 1;
  while (rows < std::min(shape.m, most)) rows *= 2;
  return rows;
}

std::int64_t ProductVariant::tile_columns() const {
  switch (kernel) {
    case ProductKernel::tile:
      return kTileColumns;
    case ProductKernel::shared:
    case ProductKernel::subgroup:
    case ProductKernel::cooperative:
      return block_n;
    case ProductKernel::vector:
      return columns;
  }
  return 1;
}

std::int64_t ProductVariant::tiles(const ProductShape& shape) const {
  return ceil_div(shape.m, rows(shape)) * ceil_div(shape.n, tile_columns()) * shape.batches;
}

std::int64_t ProductVariant::lanes_on(const Capabilities& can) const {
  constexpr std::int64_t kSubgroup = 32;
  return kernel == ProductKernel::cooperative ? lanes / kSubgroup * can.subgroup_size : lanes;
}

std::int64_t ProductVariant::iterations(const ProductShape& shape, std::int64_t groups,
                                        const Capabilities& can) const {
  const std::int64_t threads = lanes_on(can);
  const std::int64_t workers = kernel == ProductKernel::tile ? groups * lanes : groups;
  // Batch coordinates: five at most, for two views a segment and the epilogue.
  const std::int64_t segments = shape.segments;
  std::int64_t each = 12 * segments + 12;
  switch (kernel) {
    case ProductKernel::tile:
      each += shape.k / 4 + 3 * segments + kTileRows;
      break;
    case ProductKernel::subgroup:
      each += shape.k / kSubgroupSteps + (kSubgroupSteps - 1) * segments + rows(shape);
      break;
    case ProductKernel::cooperative:
      each += std::int64_t{block_m} * block_n / threads;
      [[fallthrough]];
    case ProductKernel::shared: {
      const std::int64_t loads = ceil_div(std::int64_t{block_k} * block_m, threads) +
                                 ceil_div(std::int64_t{block_k} * block_n, threads) + 2;
      each += (shape.k / block_k + segments) * (loads + block_k + 2) + std::int64_t{thread_m} * thread_n / 4;
      break;
    }
    case ProductKernel::vector:
      each += shape.k / (lanes / columns) + 4 * segments + 16 + rows(shape);
      break;
  }
  return ceil_div(tiles(shape), workers) * each;
}

std::span<const ProductVariant> product_variants() { return kVariants; }

const ProductVariant* find_product_variant(std::string_view name) {
  const auto* const found = std::ranges::find_if(kVariants, [&](const auto& v) { return v.name == name; });
  return found != std::end(kVariants) ? found : nullptr;
}

std::string why_not(const ProductVariant& variant, const ProductShape& shape, const Capabilities& can) {
  if (variant.subgroups && !can.subgroup_arithmetic) return "needs subgroup arithmetic in compute shaders";
  if (variant.kernel == ProductKernel::subgroup) {
    if (!can.subgroup_ballot) return "needs subgroup broadcasts in compute shaders";
    if (static_cast<std::uint32_t>(variant.lanes) != can.subgroup_size)
      return fmt::format("needs subgroups of {}, the device's have {}", variant.lanes, can.subgroup_size);
    // A software device has no other way to run a workgroup of as many.
    if (!can.subgroup_size_control && !can.software) return "needs pipelines that ask for full subgroups";
    if (shape.type != DType::f32) return "is for sums of f32";
  }
  if (variant.kernel == ProductKernel::cooperative) {
    if (!can.cooperative_matrix)
      return "needs cooperative matrices (VK_KHR_cooperative_matrix) of f16 with sums of f32";
    if (shape.a != DType::f16 || shape.b != DType::f16 || shape.type != DType::f32 || shape.mixed_memory)
      return "is for A and B in f16 with sums of f32";
    // Sums that one invocation keeps; more than that spill.
    const std::int64_t sums =
        std::int64_t{variant.block_m} * variant.block_n / variant.lanes_on(can) * (shape.scaled ? 2 : 1);
    if (sums > kMostSums) return fmt::format("needs {} registers for sums, where {} fit", sums, kMostSums);
    const MatrixShape& matrix = can.matrix_f16;
    const auto divides = [](std::uint32_t extent, int whole) {
      return static_cast<std::uint32_t>(whole) % extent == 0;
    };
    if (!divides(matrix.m, variant.block_m / 2) || !divides(matrix.n, variant.block_n / 2) ||
        !divides(matrix.k, variant.block_k))
      return fmt::format("needs matrices that divide {} x {}, the device's are {} x {} x {}",
                         variant.block_m / 2, variant.block_n / 2, matrix.m, matrix.n, matrix.k);
  }
  if (variant.lanes_on(can) > can.max_invocations)
    return fmt::format("needs workgroups of {} invocations, the device has {}", variant.lanes_on(can),
                       can.max_invocations);
  if (const std::int64_t bytes = variant.shared_bytes(shape, can); bytes > can.shared_memory)
    return fmt::format("needs {} bytes of shared memory, the device has {}", bytes, can.shared_memory);
  if (can.loop_limit > 0) {
    const std::int64_t units = variant.tiles(shape);
    const std::int64_t wanted =
        variant.kernel == ProductKernel::tile ? ceil_div(units, variant.lanes) : units;
    const std::int64_t loops =
        variant.iterations(shape, std::clamp<std::int64_t>(wanted, 1, can.max_groups), can);
    if (loops > can.loop_limit)
      return fmt::format("needs {} loop iterations an invocation, the driver stops at {}", loops,
                         can.loop_limit);
  }
  return {};
}

ProductShape typical_product(const ProductVariant& variant) {
  ProductShape shape{.m = 64, .n = 64, .k = 64};
  if (variant.kernel == ProductKernel::cooperative) shape.a = shape.b = DType::f16;
  return shape;
}

const ProductVariant& default_product_variant(const ProductShape& shape, const Capabilities& can,
                                              bool few_cores) {
  const auto runs = [&](const ProductVariant& v) { return why_not(v, shape, can).empty(); };
  const auto first_of = [&](std::initializer_list<const char*> names) -> const ProductVariant& {
    for (const char* name : names) {
      const ProductVariant& variant = *find_product_variant(name);
      if (runs(variant)) return variant;
    }
    // Long sums, where a driver limits loops: those that share K among the invocations.
    for (const ProductVariant& variant : kVariants) {
      if (runs(variant)) return variant;
    }
    return kVariants[0];
  };
  if (few_cores && shape.m >= kBroadcastRows && shape.k >= kSubgroupSteps)
    return first_of({"subgroup", "plain"});
  if (few_cores || shape.k < kShortSum) return first_of({"plain"});
  if (shape.m <= kMostVectorRows) {
    if (shape.b_layout == ProductLayout::along_k) return first_of({"vector-k", "vector-k-tree"});
    return first_of({"vector-n"});
  }
  const auto enough = [&](const char* name) {
    return find_product_variant(name)->tiles(shape) >= kEnoughGroups;
  };
  if (shape.n > kMostVectorRows) {
    for (const char* name : {"cooperative-128", "cooperative-64", "cooperative-32"}) {
      const ProductVariant& variant = *find_product_variant(name);
      if (runs(variant) && (enough(name) || variant.block_m == kSmallestCooperative)) return variant;
    }
  }
  if (enough("shared-128")) return first_of({"shared-128", "shared-64", "shared-32"});
  if (enough("shared-64")) return first_of({"shared-64", "shared-32"});
  if (enough("shared-32") || shape.k < 16 * kShortSum) return first_of({"shared-32"});
  return first_of({"vector-n", "shared-32"});
}

bool is_candidate(const ProductVariant& variant, const ProductShape& shape) {
  switch (variant.kernel) {
    case ProductKernel::tile:
    case ProductKernel::subgroup:
      return true;
    case ProductKernel::vector:
      // Each row of tiles reads B anew.
      return shape.m <= 4 * kMostVectorRows && shape.k >= kShortSum;
    case ProductKernel::shared:
    case ProductKernel::cooperative:
      return shape.m > variant.block_m / 4 && shape.n > variant.block_n / 4 && shape.k >= kShortSum;
  }
  return false;
}

}  // namespace caldera::vulkan
