#include "engine/device/vulkan/steps/indexed_step.h"

#include <fmt/core.h>

#include <algorithm>

#include "engine/tensor/error.h"

namespace caldera::vulkan {
namespace {

constexpr int kLanes = 64;  // local_size_x of the shaders

/// The operand that the indexed axis belongs to: its strides with that of the axis in the place of the
/// indices.
struct AxisView {
  Dims dims, strides;
};

AxisView axis_view(const Step& step, const IndexedAxis& axis, const Operand& operand) {
  return {Dims{step.dims[0], axis.extent, step.dims[2]},
          Dims{operand.strides[0], axis.stride, operand.strides[2]}};
}

std::int64_t reach(const Dims& dims, const Dims& strides) {
  std::int64_t sum = 0;
  for (int d = 0; d < dims.rank(); ++d) sum += std::abs(strides[d]) * std::max<std::int64_t>(dims[d] - 1, 0);
  return sum;
}

/// Writes the block that shaders/indexed/indexed.glsl declares. `first` and `last` are the operands before
/// and after the index; `axis_is_first` says which of them is addressed through it.
std::uint32_t write_block(Encoder& encoder, const Step& step, const IndexedAxis& indexed, bool axis_is_first,
                          std::int64_t points, std::int64_t fill_low, std::int64_t fill_high) {
  TableWriter& table = encoder.table;
  const AxisView axis = axis_view(step, indexed, step.operands[axis_is_first ? 0 : 2]);
  std::int64_t biases[3];
  const std::uint32_t block = table.begin();
  for (int k = 0; k < 3; ++k) {
    const bool through_axis = k == (axis_is_first ? 0 : 2);
    const Operand& operand = step.operands[static_cast<std::size_t>(k)];
    const Dims& dims = through_axis ? axis.dims : static_cast<const Dims&>(step.dims);
    const Dims& strides = through_axis ? axis.strides : operand.strides;
    biases[k] = bias(dims, strides);
    TableWriter::check_fits(reach(dims, strides), step);
    table.address(operand, biases[k]);
  }
  table.integer(points, step);
  for (int d = 0; d < 3; ++d) table.integer(step.dims[d], step);
  table.integer(indexed.extent, step);
  table.integer(indexed.stride, step);
  for (int k = 0; k < 3; ++k) {
    table.integer(biases[k], step);
    for (int d = 0; d < 3; ++d) table.integer(step.operands[static_cast<std::size_t>(k)].strides[d], step);
  }
  table.integer(fill_low, step);
  table.integer(fill_high, step);
  return block;
}

}  // namespace

void encode_gather(Encoder& encoder, const Step& step, const GatherStep& gather) {
  const std::int64_t points = step.dims.numel();
  if (points == 0) return;
  std::int64_t fill_low = 0, fill_high = 0;
  if (step.dtype == DType::f32) fill_low = 0x7fc00000;
  if (step.dtype == DType::f64) fill_high = 0x7ff80000;
  if (step.dtype == DType::f16) fill_low = 0x7e00;
  if (step.dtype == DType::bf16) fill_low = 0x7fc0;
  const char* const words = encoder.context.glsl.in_words(step.dtype) ? "_words" : "";
  const PipelinePtr pipeline =
      encoder.context.pipelines.embedded(fmt::format("gather_{}{}", 8 * size_of(step.dtype), words));
  const std::uint32_t block = write_block(encoder, step, gather.axis, true, points, fill_low, fill_high);
  const std::uint32_t groups = encoder.groups(points, kLanes);
  encoder.dispatch(step, pipeline, block, groups, points / (std::int64_t{groups} * kLanes) + 1);
}

void encode_scatter(Encoder& encoder, const Step& step, const ScatterStep& scatter) {
  const std::int64_t columns = step.dims[0] * step.dims[2];
  if (columns == 0 || step.dims[1] == 0) return;
  if ((step.dtype == DType::boolean && scatter.combine == Scatter::add) || is_memory_type(step.dtype) ||
      !encoder.context.supports(step.dtype))
    throw DTypeError(fmt::format("{} has no kernel on this device", name(step.dtype)));
  const char* type = step.dtype == DType::f32   ? "f32"
                     : step.dtype == DType::f64 ? "f64"
                     : step.dtype == DType::i64 ? "i64"
                     : step.dtype == DType::i32 ? "i32"
                                                : "u8";
  const std::int32_t how = static_cast<std::int32_t>(scatter.combine);
  const char* const words = encoder.context.glsl.in_words(step.dtype) ? "_words" : "";
  const PipelinePtr pipeline =
      encoder.context.pipelines.embedded(fmt::format("scatter_{}{}", type, words), {&how, 1});
  const std::uint32_t block = write_block(encoder, step, scatter.axis, false, columns, 0, 0);
  const std::uint32_t groups = encoder.groups(columns, kLanes);
  const std::int64_t columns_each = columns / (std::int64_t{groups} * kLanes) + 1;
  encoder.dispatch(step, pipeline, block, groups, columns_each * (step.dims[1] + 1));
}

}  // namespace caldera::vulkan
