// Contractions: merges batch dimensions, picks the shader.
#include <fmt/core.h>

#include <algorithm>

#include "engine/device/vulkan/encoder.h"
#include "engine/tensor/error.h"

namespace caldera::vulkan {
namespace {

// As in shaders/matmul.glsl and matmul_tile.glsl.
constexpr int kMaxBatchRank = 5;  // kMaxRank less M, N, K
constexpr int kBlock = 4;         // columns of a tile
constexpr int kRows = 8;
constexpr int kLanes = 64;

/// C[b, m, n] = sum A[b, m, k] B[b, k, n] after merging: batch extents, and each operand's strides.
struct Problem {
  Dims batch;
  std::int64_t m = 0, n = 0, k = 0;
  struct View {
    Dims batch;
    std::int64_t rows = 0, columns = 0;
  } a, b, c;
  std::int64_t batches() const {
    std::int64_t product = 1;
    for (std::int64_t e : batch) product *= e;
    return product;
  }
};

Problem make_problem(const Step& step) {
  const int rank = step.dims.rank();
  const int m = rank - 3, n = rank - 2, k = rank - 1;
  const Dims &a = step.operands[0].strides, &b = step.operands[1].strides, &c = step.operands[2].strides;
  Problem p;
  p.m = step.dims[m];
  p.n = step.dims[n];
  p.k = step.dims[k];
  p.a = {{}, a[m], a[k]};
  p.b = {{}, b[k], b[n]};
  p.c = {{}, c[m], c[n]};
  for (int d = 0; d < m; ++d) {
    const std::int64_t extent = step.dims[d];
    if (extent == 1) continue;
    const bool joins = !p.batch.empty() && p.a.batch.back() == a[d] * extent &&
                       p.b.batch.back() == b[d] * extent && p.c.batch.back() == c[d] * extent;
    if (joins) {
      const int last = p.batch.rank() - 1;
      p.batch[last] *= extent;
      p.a.batch[last] = a[d];
      p.b.batch[last] = b[d];
      p.c.batch[last] = c[d];
    } else {
      p.batch.push_back(extent);
      p.a.batch.push_back(a[d]);
      p.b.batch.push_back(b[d]);
      p.c.batch.push_back(c[d]);
    }
  }
  // One B for all of a batch dimension: its rows join M (a linear layer over batch and sequence).
  while (!p.batch.empty()) {
    const int last = p.batch.rank() - 1;
    const bool rows =
        p.b.batch[last] == 0 && p.a.batch[last] == p.m * p.a.rows && p.c.batch[last] == p.m * p.c.rows;
    const bool single_row = p.b.batch[last] == 0 && p.m == 1;
    if (!rows && !single_row) break;
    if (p.m == 1) {
      p.a.rows = p.a.batch[last];
      p.c.rows = p.c.batch[last];
    }
    p.m *= p.batch[last];
    p.batch.erase(last);
    p.a.batch.erase(last);
    p.b.batch.erase(last);
    p.c.batch.erase(last);
  }
  return p;
}

/// Writes one operand's View of shaders/matmul.glsl.
void write_view(TableWriter& table, const Step& step, const Problem::View& view, std::int64_t bias) {
  table.integer(bias, step);
  table.integer(view.rows, step);
  table.integer(view.columns, step);
  for (int d = 0; d < kMaxBatchRank; ++d) table.integer(d < view.batch.rank() ? view.batch[d] : 0, step);
}

std::int64_t view_bias(const Problem& p, const Problem::View& v, std::int64_t rows, std::int64_t columns,
                       const Step& step) {
  Dims extents = p.batch, strides = v.batch;
  extents.push_back(rows);
  extents.push_back(columns);
  strides.push_back(v.rows);
  strides.push_back(v.columns);
  std::int64_t reach = 0;
  for (int d = 0; d < extents.rank(); ++d)
    reach += std::abs(strides[d]) * std::max<std::int64_t>(extents[d] - 1, 0);
  TableWriter::check_fits(reach, step);
  return bias(extents, strides);
}

}  // namespace

void encode_contract(Encoder& encoder, const Step& step) {
  Context& context = encoder.context;
  const Problem p = make_problem(step);
  const std::int64_t batches = p.batches();
  if (batches * p.m * p.n == 0) return;
  const char* type = step.dtype == DType::f32   ? "f32"
                     : step.dtype == DType::f64 ? "f64"
                     : step.dtype == DType::i64 ? "i64"
                     : step.dtype == DType::i32 ? "i32"
                     : step.dtype == DType::u8  ? "u8"
                                                : nullptr;
  if (type == nullptr || !context.supports(step.dtype))
    throw DTypeError(
        fmt::format("{} has no kernel on {}", name(step.dtype), context.device->physical().info.name));

  // A row of C an invocation where there are few; otherwise a tile of several.
  const std::int64_t rows = p.m < kBlock ? 1 : kRows;
  const std::int64_t tiles = ((p.m + rows - 1) / rows) * ((p.n + kBlock - 1) / kBlock) * batches;
  TableWriter::check_fits(tiles, step);
  const auto layout = [&](std::int64_t along_k, std::int64_t along_other, std::int64_t extent) {
    if (context.device->capabilities().scalar_loads) return 0;
    if (along_k == 1) return 1;
    return along_other == 1 && extent >= kBlock ? 2 : 0;
  };
  const VkPipeline pipeline = context.pipelines.embedded(
      fmt::format("matmul_{}{}", rows == 1 ? "row_" : "", type),
      {layout(p.a.columns, p.a.rows, rows == 1 ? 0 : p.m), layout(p.b.rows, p.b.columns, p.n)});

  TableWriter& table = encoder.table;
  const std::int64_t a_bias = view_bias(p, p.a, p.m, p.k, step), b_bias = view_bias(p, p.b, p.k, p.n, step),
                     c_bias = view_bias(p, p.c, p.m, p.n, step);
  const std::uint32_t block = table.begin();
  table.address(step.operands[0], a_bias);
  table.address(step.operands[1], b_bias);
  table.address(step.operands[2], c_bias);
  for (std::int64_t value : {batches, p.m, p.n, p.k, std::int64_t{p.batch.rank()}})
    table.integer(value, step);
  for (int d = 0; d < kMaxBatchRank; ++d) table.integer(d < p.batch.rank() ? p.batch[d] : 1, step);
  write_view(table, step, p.a, a_bias);
  write_view(table, step, p.b, b_bias);
  write_view(table, step, p.c, c_bias);
  const std::uint32_t groups = encoder.groups(tiles, kLanes);
  const std::int64_t tiles_each = (tiles + groups * kLanes - 1) / (std::int64_t{groups} * kLanes);
  encoder.dispatch(step, pipeline, block, groups, tiles_each * (p.k / 4 + p.k % 4 + p.batch.rank() + 2));
}

}  // namespace caldera::vulkan
