// Regions: merges dimensions, classifies the operands' access, picks the form of a reduction.
#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "engine/device/vulkan/encoder.h"
#include "engine/tensor/error.h"

namespace caldera::vulkan {
namespace {

/// The iteration space with its strides, after dimensions that every operand walks in one stride were merged.
struct Space {
  Dims kept, reduced;
  std::vector<Dims> strides;  // of each operand, over kept then reduced
  std::int64_t kept_points = 1, reduced_points = 1;

  int rank() const { return kept.rank() + reduced.rank(); }
  std::int64_t extent(int d) const { return d < kept.rank() ? kept[d] : reduced[d - kept.rank()]; }
};

/// Appends dims [first, last) of the step to `dims`, dropping those of extent 1 and merging neighbours.
void merge(const Step& step, int first, int last, Dims& dims, std::vector<Dims>& strides) {
  const int start = strides.empty() ? 0 : strides[0].rank();
  for (int d = first; d < last; ++d) {
    const std::int64_t extent = step.dims[d];
    if (extent == 1) continue;
    bool joins = dims.rank() > 0 && !strides.empty() && strides[0].rank() > start;
    for (std::size_t k = 0; joins && k < strides.size(); ++k)
      joins = strides[k].back() == step.operands[k].strides[d] * extent;
    if (joins) {
      dims[dims.rank() - 1] *= extent;
      for (std::size_t k = 0; k < strides.size(); ++k)
        strides[k][strides[k].rank() - 1] = step.operands[k].strides[d];
    } else {
      dims.push_back(extent);
      for (std::size_t k = 0; k < strides.size(); ++k) strides[k].push_back(step.operands[k].strides[d]);
    }
  }
}

Space make_space(const Step& step) {
  Space space;
  const int kept = step.dims.rank() - step.reduce_rank;
  space.strides.resize(step.operands.size());
  for (int d = 0; d < step.dims.rank(); ++d) {
    (d < kept ? space.kept_points : space.reduced_points) *= step.dims[d];
  }
  merge(step, 0, kept, space.kept, space.strides);
  merge(step, kept, step.dims.rank(), space.reduced, space.strides);
  return space;
}

Access classify(const Space& space, const Dims& strides, int rank, bool index) {
  bool scalar = true;
  bool linear = true;
  std::int64_t dense = 1;
  for (int d = rank - 1; d >= 0; --d) {
    scalar = scalar && strides[d] == 0;
    linear = linear && strides[d] == dense;
    dense *= space.extent(d);
  }
  if (scalar) return Access::scalar;
  return linear && !index ? Access::linear : Access::strided;
}

/// Whether neighbouring lanes should take neighbours along the reduced dimensions.
bool prefers_groups(const Space& space, const Kernel& kernel, std::int64_t lanes) {
  if (space.reduced_points < 2 * lanes) return false;
  if (space.kept_points < 64 && space.reduced_points >= 256) return true;
  // Rows: the innermost reduced dimension is contiguous in most of what is read.
  int rows = 0, columns = 0;
  for (std::size_t k = 0; k < kernel.inputs.size(); ++k) {
    const Dims& s = space.strides[k];
    const std::int64_t row = space.reduced.rank() > 0 ? s[space.rank() - 1] : 0;
    const std::int64_t column = space.kept.rank() > 0 ? s[space.kept.rank() - 1] : 0;
    if (std::abs(row) == 1) ++rows;
    if (std::abs(column) == 1) ++columns;
  }
  return rows >= columns;
}

/// Sets the form of a reduction and its workgroups; returns the outputs that a workgroup takes.
std::int64_t choose_reduction(const Context& context, const Space& space, const Kernel& kernel,
                              KernelVariant& variant) {
  const Capabilities& can = context.device->capabilities();
  const std::int64_t subgroup = context.glsl.subgroup_size > 0 ? context.glsl.subgroup_size : 32;
  const std::int64_t most =
      std::min<std::int64_t>(can.max_invocations / subgroup, can.max_subgroups) * subgroup;
  const std::int64_t loops = can.loop_limit > 0 ? can.loop_limit / 2 : INT64_MAX;
  variant.form = RegionForm::reduce_per_thread;
  if (!prefers_groups(space, kernel, subgroup) && space.reduced_points < loops) return variant.lanes;
  variant.form = RegionForm::reduce_per_group;
  std::int64_t lanes = subgroup;
  // A few long rows: more lanes a row, where wide workgroups cost nothing.
  if (!can.software && space.kept_points < 256 && space.reduced_points >= 4096)
    lanes = std::min(most, std::max<std::int64_t>(256 / subgroup, 1) * subgroup);
  while (space.reduced_points / lanes >= loops && 2 * lanes <= most) lanes *= 2;
  variant.lanes = static_cast<std::uint16_t>(lanes);
  return 1;
}

}  // namespace

void encode_region(Encoder& encoder, const Step& step) {
  const Kernel& kernel = *step.kernel;
  Context& context = encoder.context;
  for (const Instruction& i : kernel.code) {
    // A seed is read as two words; whatever else has a type that the device cannot compute with is refused.
    if (i.op != ScalarOp::scalar && !context.supports(i.type))
      throw DTypeError(fmt::format("{} of {}: {} has no such type", info(i.op).name, name(i.type),
                                   context.device->physical().info.name));
  }
  const Space space = make_space(step);
  if (space.kept_points == 0 || (!kernel.reduce && space.reduced_points == 0)) return;

  const int inputs = static_cast<int>(kernel.inputs.size());
  const int first_output = inputs + kernel.index_count;
  KernelVariant variant;
  variant.rank = static_cast<std::uint8_t>(space.rank());
  variant.reduce_rank = static_cast<std::uint8_t>(space.reduced.rank());
  for (int k = 0; k < static_cast<int>(step.operands.size()); ++k) {
    const bool kept_only = kernel.reduce && k >= first_output;
    variant.access.push_back(classify(space, space.strides[static_cast<std::size_t>(k)],
                                      kept_only ? space.kept.rank() : space.rank(),
                                      k >= inputs && k < first_output));
  }

  const GlslOptions& options = context.glsl;
  const std::int64_t points = space.kept_points * (kernel.reduce ? 1 : space.reduced_points);
  const std::int64_t per_group =
      kernel.reduce ? choose_reduction(context, space, kernel, variant) : variant.lanes;

  Hash128 key = kernel.hash;
  const Hash128 variant_key = variant.hash();
  key.mix(variant_key.lo);
  key.mix(variant_key.hi);
  const VkPipeline pipeline =
      context.pipelines.generated(key, kernel.name, variant.form == RegionForm::reduce_per_group,
                                  [&] { return to_glsl(kernel, variant, options); });

  // The block, in the order that ArgumentLayout states.
  TableWriter& table = encoder.table;
  const std::uint32_t block = table.begin();
  std::vector<std::int64_t> biases;
  Dims extents;
  for (int d = 0; d < space.rank(); ++d) extents.push_back(space.extent(d));
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    const bool index = static_cast<int>(k) >= inputs && static_cast<int>(k) < first_output;
    biases.push_back(index ? step.operands[k].offset : bias(extents, space.strides[k]));
    if (!index) table.address(step.operands[k], biases.back());
  }
  for (std::int32_t s : step.scalars) table.scalar(s);
  table.integer(points, step);
  table.integer(space.reduced_points, step);
  for (int d = 0; d < space.rank(); ++d) table.integer(extents[d], step);
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    const int operand = static_cast<int>(k);
    const bool index = operand >= inputs && operand < first_output;
    const bool strided = variant.access[k] == Access::strided;
    const int rank = kernel.reduce && operand >= first_output ? space.kept.rank() : space.rank();
    std::int64_t reach = biases[k];  // the largest element number
    if (index || strided) table.integer(biases[k], step);
    for (int d = 0; strided && d < rank; ++d) {
      table.integer(space.strides[k][d], step);
      reach += std::max<std::int64_t>(space.strides[k][d], 0) * std::max<std::int64_t>(extents[d] - 1, 0);
    }
    if (!index) TableWriter::check_fits(reach, step);
  }
  TableWriter::check_fits(space.kept_points * space.reduced_points, step);  // numbers of linear elements

  const std::uint32_t groups = encoder.groups(points, per_group);
  const std::int64_t points_each = points / (groups * per_group) + 1;
  std::int64_t iterations = points_each;
  if (variant.form == RegionForm::reduce_per_group)
    iterations *=
        space.reduced_points / variant.lanes + variant.lanes / std::max(1U, options.subgroup_size) + 2;
  if (variant.form == RegionForm::reduce_per_thread) {
    std::int64_t loops = 1;  // of the nest, every level counts
    for (int d = 0; d < space.reduced.rank(); ++d) loops = (loops + 1) * space.reduced[d];
    iterations *= loops + 1;
  }
  encoder.dispatch(step, pipeline, block, groups, iterations);
}

}  // namespace caldera::vulkan
