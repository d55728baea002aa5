#include "engine/device/vulkan/steps/transpose_step.h"

#include <fmt/core.h>

#include <algorithm>

#include "engine/device/vulkan/pipelines/embedded_shaders.h"
#include "engine/device/vulkan/record/argument_block.h"

namespace caldera::vulkan {
namespace {

// As in shaders/transpose/transpose.glsl.
constexpr std::int64_t kSize = 32;
constexpr std::int64_t kTransposeLanes = 256;
constexpr int kMostTransposeBatches = 6;

/// Every device has so much shared memory.
static_assert(kSize * (kSize + 1) * 8 <= 16384);

/// Less than half a tile is not worth one.
constexpr std::int64_t kShortest = kSize / 2;

/// The dimension along which `strides` are 1, the longest if there are several; -1 without one.
int contiguous_dimension(const RegionSpace& space, const Dims& strides) {
  int found = -1;
  for (int d = 0; d < space.rank(); ++d) {
    if (strides[d] == 1 && (found < 0 || space.kept[d] > space.kept[found])) found = d;
  }
  return found;
}

bool only_copies(const Kernel& kernel) {
  return kernel.code.size() == 1 && kernel.code[0].op == ScalarOp::load && kernel.inputs.size() == 1 &&
         kernel.outputs.size() == 1 && kernel.index_count == 0 &&
         kernel.inputs[0] == kernel.outputs[0].type && !kernel.reduce;
}

}  // namespace

bool encode_transpose(Encoder& encoder, const Kernel& kernel, const Step& step, const RegionSpace& space) {
  const Context& context = encoder.context;
  const Capabilities& can = context.device->capabilities();
  // Processors have caches that make up for scattered stores, and pay for barriers.
  if (context.few_cores || !only_copies(kernel) || space.reduced.rank() > 0 ||
      can.max_invocations < kTransposeLanes || context.glsl.in_words(kernel.inputs[0]))
    return false;
  const Dims &from = space.strides[0], &to = space.strides[1];
  const auto backwards = [](std::int64_t s) { return s < 0; };
  if (std::ranges::any_of(from, backwards) || std::ranges::any_of(to, backwards)) return false;
  const int column = contiguous_dimension(space, from), row = contiguous_dimension(space, to);
  if (column < 0 || row < 0 || row == column || space.rank() - 2 > kMostTransposeBatches ||
      space.kept[row] < kShortest || space.kept[column] < kShortest)
    return false;

  std::int64_t batches = 1, reach[2] = {};
  Dims extents, strides[2];
  for (int d = 0; d < space.rank(); ++d) {
    for (int side : {0, 1})
      reach[side] += space.strides[static_cast<std::size_t>(side)][d] * (space.kept[d] - 1);
    if (d == row || d == column) continue;
    batches *= space.kept[d];
    extents.push_back(space.kept[d]);
    strides[0].push_back(from[d]);
    strides[1].push_back(to[d]);
  }
  for (std::int64_t r : reach) TableWriter::check_fits(r, step);
  const std::int64_t tiles =
      ((space.kept[row] + kSize - 1) / kSize) * ((space.kept[column] + kSize - 1) / kSize) * batches;
  TableWriter::check_fits(tiles, step);
  const std::uint32_t groups = encoder.groups(tiles, 1);
  const std::int64_t iterations = (tiles + groups - 1) / groups * (2 * kSize / 8 + kMostTransposeBatches + 1);
  if (can.loop_limit > 0 && iterations > can.loop_limit) return false;

  const PipelinePtr pipeline =
      encoder.context.pipelines.embedded(fmt::format("transpose_{}", 8 * size_of(kernel.inputs[0])));
  static const DeclaredBlock kDeclared("transpose", shader_text("transpose"));
  const std::uint32_t begin = encoder.table.begin();
  ArgumentBlock block(encoder.table, step, kDeclared);
  block.address("from", step.operands[0]);
  block.address("to", step.operands[1]);
  block.integer("rows", space.kept[row]);
  block.integer("columns", space.kept[column]);
  block.integer("row_stride", from[row]);
  block.integer("column_stride", to[column]);
  block.integer("batches", batches);
  block.integer("batch_rank", extents.rank());
  const auto of_batches = [&](const char* name, const Dims& list) {
    for (int d = 0; d < kMostTransposeBatches; ++d) block.integer(name, d < list.rank() ? list[d] : 1);
  };
  of_batches("batch_extents", extents);
  of_batches("from_strides", strides[0]);
  of_batches("to_strides", strides[1]);
  block.end();
  encoder.dispatch(step, pipeline, begin, groups, iterations);
  return true;
}

}  // namespace caldera::vulkan
