#include "engine/device/vulkan/steps/indexed_step.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>

#include "engine/base/error.h"
#include "engine/device/vulkan/pipelines/embedded_shaders.h"
#include "engine/device/vulkan/record/argument_block.h"

namespace caldera::vulkan {
namespace {

constexpr int kIndexedLanes = 64;  // local_size_x of the shaders

/// A scatter of so few invocations is shared among more; of fewer indices than that it is short anyway.
constexpr std::int64_t kFewInvocations = 1 << 14;
constexpr std::int64_t kManyIndices = 64;
/// Those that an invocation loads at once.
constexpr std::int64_t kFewIndices = 4;

/// The operand that the indexed axis belongs to: its strides with that of the axis in the place of the
/// indices.
struct AxisView {
  Dims dims, strides;
};

AxisView axis_view(const Step& step, const IndexedAxis& axis, const Operand& operand) {
  return {Dims{step.dims[0], axis.extent, step.dims[2]},
          Dims{operand.strides[0], axis.stride, operand.strides[2]}};
}

std::int64_t indexed_reach(const Dims& dims, const Dims& strides) {
  std::int64_t sum = 0;
  for (int d = 0; d < dims.rank(); ++d) sum += std::abs(strides[d]) * std::max<std::int64_t>(dims[d] - 1, 0);
  return sum;
}

/// The numbers of a block that are not the step's.
struct BlockNumbers {
  std::int64_t points = 0;
  std::int64_t fill_low = 0, fill_high = 0;
  std::int64_t parts = 1, part_extent = 0;
  std::int64_t apart = 0, begin = 0, count = 0;  // of the indices
};

/// Writes the block. `first` and `last` are the operands before and after the index; `axis_is_first` says
/// which of them is addressed through it.
std::uint32_t write_indexed_block(Encoder& encoder, const Step& step, const IndexedAxis& indexed,
                                  bool axis_is_first, const BlockNumbers& numbers) {
  const AxisView axis = axis_view(step, indexed, step.operands[axis_is_first ? 0 : 2]);
  std::int64_t biases[3];
  static const DeclaredBlock kDeclared("indexed", shader_text("indexed"));
  constexpr std::array kNames{"first", "index", "last"}, kViews{"first_view", "index_view", "last_view"};
  const std::uint32_t begin = encoder.table.begin();
  ArgumentBlock block(encoder.table, step, kDeclared);
  for (std::size_t k = 0; k < 3; ++k) {
    const bool through_axis = k == (axis_is_first ? 0 : 2);
    const Operand& operand = step.operands[k];
    const Dims& dims = through_axis ? axis.dims : static_cast<const Dims&>(step.dims);
    const Dims& strides = through_axis ? axis.strides : operand.strides;
    biases[k] = bias(dims, strides);
    TableWriter::check_fits(indexed_reach(dims, strides), step);
    block.address(kNames[k], operand, biases[k]);
  }
  block.integer("points", numbers.points);
  block.integer("outer", step.dims[0]);
  block.integer("indices", step.dims[1]);
  block.integer("inner", step.dims[2]);
  block.integer("axis_extent", indexed.extent);
  block.integer("axis_stride", indexed.stride);
  for (std::size_t k = 0; k < 3; ++k) {
    const Dims& strides = step.operands[k].strides;
    block.integers(kViews[k], {biases[k], strides[0], strides[1], strides[2]});
  }
  block.integer("fill_low", numbers.fill_low);
  block.integer("fill_high", numbers.fill_high);
  block.integer("parts", numbers.parts);
  block.integer("part_extent", numbers.part_extent);
  block.integer("apart", numbers.apart);
  block.integer("begin", numbers.begin);
  block.integer("count", numbers.count);
  block.end();
  return begin;
}

/// The bytes of a row of the result where gather_rows may copy it, as GPUs like it: neighbours on both sides,
/// one index for all, and 16 bytes at least. Else 0.
std::int64_t row_bytes(const Context& context, const Step& step) {
  if (context.few_cores && context.device->capabilities().scalar_loads) return 0;
  const std::int64_t bytes = step.dims[2] * static_cast<std::int64_t>(size_of(step.dtype));
  const bool together = step.operands[0].strides[2] == 1 && step.operands[1].strides[2] == 0 &&
                        step.operands[2].strides[2] == 1;
  return together && bytes >= 16 ? bytes : 0;
}

}  // namespace

void encode_gather(Encoder& encoder, const Step& step, const GatherStep& gather) {
  const std::int64_t points = step.dims.numel();
  if (points == 0) return;
  BlockNumbers numbers{.points = points};
  // What is outside of the axis is NaN or 0, as it repeats over eight bytes.
  if (step.dtype == DType::f32) numbers.fill_low = numbers.fill_high = 0x7fc00000;
  if (step.dtype == DType::f64) numbers.fill_high = 0x7ff80000;
  if (step.dtype == DType::f16) numbers.fill_low = numbers.fill_high = 0x7e007e00;
  if (step.dtype == DType::bf16) numbers.fill_low = numbers.fill_high = 0x7fc07fc0;
  const char* const words = encoder.context.glsl.in_words(step.dtype) ? "_words" : "";
  if (const std::int64_t bytes = row_bytes(encoder.context, step); bytes > 0) {
    int log_lanes = 0;
    while ((1 << log_lanes) < kIndexedLanes && (std::int64_t{16} << log_lanes) < bytes) ++log_lanes;
    numbers.points = step.dims[0] * step.dims[1];
    numbers.parts = log_lanes;
    const std::int64_t at_once = kIndexedLanes >> log_lanes;
    const PipelinePtr rows =
        encoder.context.pipelines.embedded(fmt::format("gather_rows_{}{}", 8 * size_of(step.dtype), words));
    const std::uint32_t block = write_indexed_block(encoder, step, gather.axis, true, numbers);
    const std::uint32_t groups = encoder.groups(numbers.points, at_once);
    const std::int64_t rows_each = numbers.points / (groups * at_once) + 1;
    encoder.dispatch(step, rows, block, groups, rows_each * (step.dims[2] / (1 << log_lanes) + 2));
    return;
  }
  const PipelinePtr pipeline =
      encoder.context.pipelines.embedded(fmt::format("gather_{}{}", 8 * size_of(step.dtype), words));
  const std::uint32_t block = write_indexed_block(encoder, step, gather.axis, true, numbers);
  const std::uint32_t groups = encoder.groups(points, kIndexedLanes);
  encoder.dispatch(step, pipeline, block, groups, points / (std::int64_t{groups} * kIndexedLanes) + 1);
}

void encode_scatter(Encoder& encoder, const Step& step, const ScatterStep& scatter) {
  const std::int64_t columns = step.dims[0] * step.dims[2];
  if (columns == 0 || step.dims[1] == 0) return;
  if ((step.dtype == DType::boolean && scatter.combine == Scatter::add) ||
      (is_memory_type(step.dtype) && !(is_half(step.dtype) && scatter.combine == Scatter::set)) ||
      !encoder.context.supports(step.dtype))
    throw DTypeError(fmt::format("{} has no kernel on this device", name(step.dtype)));
  const char* type = step.dtype == DType::f32   ? "f32"
                     : step.dtype == DType::f64 ? "f64"
                     : step.dtype == DType::i64 ? "i64"
                     : step.dtype == DType::i32 ? "i32"
                     : is_half(step.dtype)      ? "16"
                                                : "u8";
  const std::int32_t how = static_cast<std::int32_t>(scatter.combine);
  const char* const words = encoder.context.glsl.in_words(step.dtype) ? "_words" : "";
  const PipelinePtr pipeline =
      encoder.context.pipelines.embedded(fmt::format("scatter_{}{}", type, words), {&how, 1});
  // Where no index comes twice an invocation has a few of them.
  if (scatter.distinct) {
    const std::int64_t each = encoder.context.few_cores ? kManyIndices : kFewIndices;
    const std::int64_t parts = (step.dims[1] + each - 1) / each;
    const BlockNumbers numbers{.points = columns, .parts = parts, .apart = 1, .count = each};
    const std::uint32_t block = write_indexed_block(encoder, step, scatter.axis, false, numbers);
    const std::uint32_t groups = encoder.groups(columns * parts, kIndexedLanes);
    const std::int64_t work_each = columns * parts / (std::int64_t{groups} * kIndexedLanes) + 1;
    encoder.dispatch(step, pipeline, block, groups, work_each * (each + 1));
    return;
  }
  // Invocations that share a column have a part of the axis each, and walk all of its indices: whatever comes
  // to an element still comes in order. A processor gains nothing by that.
  BlockNumbers numbers{.points = columns};
  if (!encoder.context.few_cores && step.dims[1] >= kManyIndices)
    numbers.parts = std::clamp<std::int64_t>(kFewInvocations / columns, 1,
                                             std::max<std::int64_t>(scatter.axis.extent, 1));
  numbers.part_extent = (scatter.axis.extent + numbers.parts - 1) / numbers.parts;
  const std::int64_t work = columns * numbers.parts;
  const std::uint32_t groups = encoder.groups(work, kIndexedLanes);
  const std::int64_t work_each = work / (std::int64_t{groups} * kIndexedLanes) + 1;
  // As many indices at a time as the driver lets an invocation walk.
  const std::int64_t limit = encoder.context.device->capabilities().loop_limit;
  numbers.count =
      limit == 0 ? step.dims[1] : std::clamp<std::int64_t>(limit / work_each - 1, 1, step.dims[1]);
  for (; numbers.begin < step.dims[1]; numbers.begin += numbers.count) {
    encoder.barrier_next |= numbers.begin > 0;
    const std::uint32_t block = write_indexed_block(encoder, step, scatter.axis, false, numbers);
    encoder.dispatch(step, pipeline, block, groups, work_each * (numbers.count + 1));
  }
}

}  // namespace caldera::vulkan
