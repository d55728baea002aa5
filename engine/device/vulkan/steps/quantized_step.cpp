#include "engine/device/vulkan/steps/quantized_step.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "engine/device/vulkan/pipelines/embedded_shaders.h"
#include "engine/device/vulkan/record/argument_block.h"

namespace caldera::vulkan {
namespace {

/// Rows of x up to which a workgroup computes columns of the result one by one: of one matrix, and where each
/// row has a matrix of its own.
constexpr std::int64_t kFewRows = 8;
constexpr std::int64_t kFewIndexedRows = 32;
constexpr int kRowLanes = 64;  // local_size_x of quantized_rows

/// The constants of all kernels, by number; the first is the size of a workgroup.
using Constants = std::array<std::int32_t, 6>;

std::int32_t type_number(const Plan& plan, const Step& step, const QuantizedStep& quantized,
                         std::size_t part) {
  const std::size_t k = quantized.first_part() + part;
  if (k + 1 >= step.operands.size()) return 0;
  const DType type = plan.buffers[static_cast<std::size_t>(step.operands[k].buffer)].dtype;
  return type == DType::f16 ? 1 : type == DType::bf16 ? 2 : 0;
}

/// The largest number that addresses an element along one axis or two, counted from the least.
std::int64_t quantized_reach(const Dims& extents, const Dims& strides) {
  std::int64_t sum = 0;
  for (int d = 0; d < extents.rank(); ++d)
    sum += std::abs(strides[d]) * std::max<std::int64_t>(extents[d] - 1, 0);
  return sum;
}

/// Writes the block of all kernels. What a step lacks has the address of the codes.
std::uint32_t write_quantized_block(Encoder& encoder, const Step& step, const QuantizedStep& quantized) {
  const QuantizedNode& what = quantized.what;
  const std::size_t first = quantized.first_part();
  const std::vector<QuantizedPart> parts = parts_of(what.layout, what.rows, what.columns);
  const Operand& codes = step.operands[first];
  const Operand& out = step.operands.back();
  const Operand& x = quantized.has_x() ? step.operands[0] : codes;
  const Operand& which = quantized.has_which() ? step.operands[first - 1] : codes;
  const bool across = what.work == QuantizedWork::transposed_product;
  const std::int64_t x_row = x.strides[0], x_column = x.strides[across ? 1 : 2];
  // Element numbers are never negative: addresses are lowered where strides are.
  const Dims x_extents{step.dims[0], across ? what.rows : what.columns}, x_strides{x_row, x_column};
  const Dims which_extents{step.dims[0]}, which_strides{which.strides[0]};
  const std::int64_t x_bias = quantized.has_x() ? bias(x_extents, x_strides) : 0;
  const std::int64_t which_bias = quantized.has_which() ? bias(which_extents, which_strides) : 0;
  static const DeclaredBlock kDeclared("quantized", shader_text("quantized"));
  const std::uint32_t begin = encoder.table.begin();
  ArgumentBlock block(encoder.table, step, kDeclared);
  block.address("x", x, x_bias);
  block.address("which", which, which_bias);
  const auto part = [&](std::size_t i) { return i < parts.size() ? step.operands[first + i] : codes; };
  block.address("codes", codes);
  block.address("scales", part(1));
  block.address("biases", part(2));
  block.address("result", out);
  const std::int64_t width = what.work == QuantizedWork::product ? what.rows : what.columns;
  if (quantized.has_x()) TableWriter::check_fits(quantized_reach(x_extents, x_strides), step);
  if (quantized.has_which()) TableWriter::check_fits(quantized_reach(which_extents, which_strides), step);
  TableWriter::check_fits(what.work == QuantizedWork::dequantize ? step.dims.numel() : step.dims[0] * width,
                          step);
  const bool grouped = parts.size() > 1;
  const std::int64_t code_bytes = parts[0].columns * static_cast<std::int64_t>(size_of(parts[0].dtype));
  block.integer("m", step.dims[0]);
  block.integer("n", step.dims[1]);
  block.integer("k", step.dims[2]);
  block.integer("matrices", what.matrices);
  block.integer("rows", what.rows);
  block.integer("group", grouped ? what.layout.group : 1);
  block.integer("group_rows", what.layout.group_rows);
  block.integer("code_bytes", code_bytes);
  block.integer("groups", grouped ? parts[1].columns : 0);
  block.integer("scale_rows", grouped ? parts[1].rows : 0);
  block.integer("x_row", x_row);
  block.integer("x_column", x_column);
  block.integer("which_stride", which.strides[0]);
  block.integer("result_row", width);
  block.integer("indexed", quantized.has_which() ? 1 : 0);
  block.integer("x_bias", x_bias);
  block.integer("which_bias", which_bias);
  block.end();
  return begin;
}

/// quantized_tile with TILE 64 needs more than the least that Vulkan lets a device have: two parts of
/// DEPTH (TILE + 1) floats.
bool large_tile_fits(const Context& context) {
  const Capabilities& has = context.device->capabilities();
  return has.max_invocations >= 256 && has.shared_memory >= 2 * 32 * (64 + 1) * 4;
}

}  // namespace

void encode_quantized(Encoder& encoder, const Step& step, const QuantizedStep& quantized) {
  const QuantizedNode& what = quantized.what;
  const std::int64_t m = step.dims[0], n = step.dims[1], k = step.dims[2];
  const bool across = what.work == QuantizedWork::transposed_product;
  const std::int64_t width = across ? k : n;
  if (m == 0 || (what.is_product() ? width : n * k) == 0) return;
  const bool few_cores = encoder.context.few_cores;
  Constants constants{kRowLanes,
                      static_cast<std::int32_t>(what.layout.format),
                      type_number(encoder.plan, step, quantized, 1),
                      type_number(encoder.plan, step, quantized, 2),
                      0,
                      across ? 1 : 0};
  const std::uint32_t block = write_quantized_block(encoder, step, quantized);
  const auto pipeline = [&](const char* name, std::size_t count) {
    return encoder.context.pipelines.embedded(name, std::span(constants).first(count));
  };
  if (!what.is_product()) {
    const std::int64_t eights = (what.work == QuantizedWork::take_rows ? m : m * n) * ((k + 7) / 8);
    const std::uint32_t groups = encoder.groups(eights, kRowLanes);
    encoder.dispatch(step, pipeline("quantized_rows", 4), block, groups,
                     eights / (std::int64_t{groups} * kRowLanes) + 1);
    return;
  }
  if (!across && m <= (what.is_indexed ? kFewIndexedRows : kFewRows)) {
    // A few rows of several matrices are as many products of one row.
    constants[0] = few_cores ? 8 : 64;
    constants[4] = what.is_indexed ? 1 : static_cast<std::int32_t>(m <= 4 ? m : (m + 1) / 2);
    const std::int64_t bands = (m + constants[4] - 1) / constants[4];
    const std::uint32_t groups = encoder.groups(bands * n, 1);
    const std::int64_t turns = bands * n / groups + 1;
    encoder.dispatch(step, pipeline("quantized_vector", 5), block, groups,
                     turns * (k / (8 * constants[0]) + 8));
    return;
  }
  constants[4] = few_cores || std::min(m, width) <= 32 || !large_tile_fits(encoder.context) ? 32 : 64;
  const std::int64_t tile = constants[4];
  constants[0] = static_cast<std::int32_t>(tile / 4 * (tile / 4));
  const std::int64_t tiles = ((m + tile - 1) / tile) * ((width + tile - 1) / tile);
  const std::uint32_t groups = encoder.groups(tiles, 1);
  const std::int64_t runs = what.is_indexed ? std::min(m, tile) : 1;
  encoder.dispatch(step, pipeline("quantized_tile", 6), block, groups,
                   (tiles / groups + 1) * runs * ((across ? n : k) + 32));
}

}  // namespace caldera::vulkan
