// Regions: picks the form and its workgroups, writes the argument blocks.
#include "engine/device/vulkan/steps/region_step.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/vulkan/glsl/region_shader.h"
#include "engine/device/vulkan/glsl/space.h"
#include "engine/device/vulkan/steps/encoder.h"
#include "engine/device/vulkan/steps/kernel_arguments.h"
#include "engine/device/vulkan/steps/region_space.h"
#include "engine/device/vulkan/steps/transpose_step.h"
#include "engine/plan/kernel/row_walks.h"

namespace caldera::vulkan {
namespace {

/// Limits on what a lane keeps of a row in registers: points, values of all points, instructions of all
/// points.
constexpr std::int64_t kMostKept = 8;
constexpr std::int64_t kMostRegisters = 32;
constexpr std::int64_t kMostUnrolledKept = 512;

/// A software device starts a workgroup in about 0.1 us and runs the subgroups of one after the other, each
/// over all of its points. So workgroups there are single subgroups with at least so many loop
/// iterations each, and no more of them than keep a few cores busy.
constexpr std::int64_t kSoftwareIterations = 64;
constexpr std::int64_t kSoftwareGroups = 1024;
constexpr std::int64_t kFewestSoftwareGroups = 8;

/// Workgroups that take neighbours together, where there is work for more of them: enough to fill a large
/// GPU, each of which then reads its arguments once for many points.
constexpr std::int64_t kNeighbourGroups = 4096;

/// Steps of one dispatch: every device allows as many workgroups along y.
constexpr std::size_t kMaxJoined = 65535;

/// What becomes one dispatch.
struct Batch {
  const Kernel& kernel;
  std::vector<const Step*> steps;
  std::vector<RegionSpace> spaces;

  /// The one with most work: it decides the form.
  const RegionSpace& largest() const {
    return *std::ranges::max_element(spaces, {},
                                     [](const RegionSpace& s) { return s.kept_points * s.reduced_points; });
  }
  std::int64_t shortest_row() const {
    std::int64_t least = INT64_MAX;
    for (const RegionSpace& s : spaces) least = std::min(least, s.reduced_points);
    return least;
  }
  std::int64_t longest_row() const {
    std::int64_t most = 0;
    for (const RegionSpace& s : spaces) most = std::max(most, s.reduced_points);
    return most;
  }
};

/// Neighbouring points go to one lane, at most `most`, where operands allow that and it saves anything.
void take_neighbours(const Context& context, const Batch& batch, std::int64_t most, KernelVariant& variant) {
  if (context.few_cores && context.device->capabilities().scalar_loads) return;
  Together together = common_neighbours(batch.kernel, batch.spaces, variant.access, most);
  variant.width = static_cast<std::uint8_t>(together.width);
  variant.neighbours = std::move(together.neighbours);
}

/// Whether neighbouring lanes should take neighbours along the row.
bool prefers_groups(const RegionSpace& space, const Kernel& kernel, std::int64_t short_row) {
  if (space.reduced_points <= short_row) return false;
  if (space.kept_points < 64 && space.reduced_points >= 256) return true;
  // Rows: the innermost dimension of the row is contiguous in most of what is read and written. What is one
  // number a row does not count.
  int rows = 0, columns = 0;
  const auto vote = [&](const Dims& s) {
    const auto along_row = s.span().subspan(static_cast<std::size_t>(space.kept.rank()));
    if (std::ranges::all_of(along_row, [](std::int64_t stride) { return stride == 0; })) return;
    const std::int64_t column = space.kept.rank() > 0 ? s[space.kept.rank() - 1] : 0;
    if (std::abs(along_row.back()) == 1) ++rows;
    if (std::abs(column) == 1) ++columns;
  };
  const std::size_t first_output = kernel.inputs.size() + static_cast<std::size_t>(kernel.index_count);
  for (std::size_t k = 0; k < space.strides.size(); ++k)
    if (k < kernel.inputs.size() || k >= first_output) vote(space.strides[k]);
  return rows >= columns;
}

/// How the rows of a kernel with rows (or of a reduction) are walked.
struct Walks {
  std::int64_t count = 1;    // along every row
  std::int64_t results = 1;  // reductions, each of which may go through shared memory
  std::int64_t kept = 0;     // values that a later walk can use

  explicit Walks(const Kernel& kernel) {
    if (kernel.reduce || !kernel.has_rows()) return;
    const RowWalks plan = row_walks(kernel, true);
    count = static_cast<std::int64_t>(plan.walks.size());
    results = 0;
    for (const RowWalk& walk : plan.walks) results += static_cast<std::int64_t>(walk.reductions.size());
    kept = plan.kept_count();
  }
};

/// Lanes a row for GPUs, where wide workgroups cost nothing: a few long rows are shared among more lanes, and
/// rows that are walked several times are cut so that a lane can keep its points in registers. Where they are
/// too long for that, and many, workgroups are narrower: as many registers hold more of them.
std::int64_t wide_lanes(const RegionSpace& space, const Walks& walks, std::int64_t subgroup,
                        std::int64_t most) {
  std::int64_t lanes = subgroup;
  const bool several = walks.count > 1;
  const bool share = several || (space.kept_points < 256 && space.reduced_points >= 4096);
  const bool keeps = space.reduced_points <= 512 * kMostKept || space.kept_points < 256;
  const std::int64_t limit = std::min<std::int64_t>(most, several && keeps ? 512 : 256);
  const std::int64_t each = several ? kMostKept : 1;
  while (share && lanes * each < space.reduced_points && 2 * lanes <= limit) lanes *= 2;
  return lanes;
}

/// Points that a lane keeps in registers between the walks, whole groups of neighbours; 0 where that is too
/// much or no use.
std::int64_t choose_kept(const Walks& walks, std::size_t instructions, std::int64_t longest,
                         std::int64_t lanes, std::int64_t width) {
  if (walks.kept == 0) return 0;
  std::int64_t kept = width;
  while (kept * lanes < longest) kept *= 2;
  const bool fits = kept <= kMostKept && kept * walks.kept <= kMostRegisters &&
                    kept * static_cast<std::int64_t>(instructions) <= kMostUnrolledKept;
  return fits ? kept : 0;
}

/// Sets the form and lanes for rows (of one that finishes, lanes are given); returns the rows that a
/// workgroup takes.
std::int64_t choose_rows(const Context& context, const Batch& batch, const Walks& walks,
                         KernelVariant& variant) {
  const Capabilities& can = context.device->capabilities();
  const bool reduction = batch.kernel.reduce.has_value();
  const RegionSpace& space = batch.largest();
  const std::int64_t subgroup = context.glsl.subgroup_size > 0 ? context.glsl.subgroup_size : 32;
  const std::int64_t shared = can.shared_memory / (8 * std::max<std::int64_t>(walks.results, 1));
  const std::int64_t subgroups =
      std::min<std::int64_t>({can.max_invocations / subgroup, can.max_subgroups, shared / subgroup});
  const std::int64_t most = std::max<std::int64_t>(subgroups, 1) * subgroup;
  const std::int64_t loops = can.loop_limit > 0 ? can.loop_limit / 2 / walks.count : INT64_MAX;
  const std::int64_t longest = batch.longest_row();
  variant.form = reduction ? RegionForm::reduce_per_thread : RegionForm::rows_per_thread;
  const std::int64_t short_row = reduction ? 2 * subgroup - 1 : kShortRow;
  // Of many reductions not even a subgroup's parts may fit: then nothing is shared.
  const bool fits =
      variant.finishes ? variant.lanes <= most && variant.lanes % subgroup == 0 : shared >= subgroup;
  const bool is_shared = fits && (prefers_groups(space, batch.kernel, short_row) || longest >= loops);
  if (!is_shared) return variant.lanes;

  variant.form = reduction ? RegionForm::reduce_per_group : RegionForm::rows_per_group;
  std::int64_t lanes = variant.finishes    ? variant.lanes
                       : context.few_cores ? subgroup
                                           : wide_lanes(space, walks, subgroup, most);
  while (!variant.finishes && longest / lanes >= loops && 2 * lanes <= most) lanes *= 2;
  variant.lanes = static_cast<std::uint16_t>(lanes);
  take_neighbours(context, batch, batch.shortest_row() / subgroup, variant);
  if (!context.few_cores)
    variant.kept = static_cast<std::uint8_t>(
        choose_kept(walks, batch.kernel.code.size(), longest, lanes, variant.width));
  variant.online = !context.few_cores && !reduction && variant.kept == 0;
  return 1;
}

/// Turns of each walk of an invocation over the points that it takes, `points_each` of them or of rows.
std::int64_t count_turns(const RegionSpace& space, const KernelVariant& variant, std::int64_t points_each) {
  switch (variant.form) {
    case RegionForm::elementwise:
      return points_each;
    case RegionForm::reduce_per_group:
    case RegionForm::rows_per_group: {
      const std::int64_t each = std::int64_t{variant.lanes} * variant.width;
      return variant.kept > 0 ? 1 : (space.reduced_points + each - 1) / each;
    }
    default:
      return space.reduced_points;
  }
}

/// Iterations of all loops in the busiest invocation.
std::int64_t count_region_iterations(const RegionSpace& space, const KernelVariant& variant,
                                     const Walks& walks, const GlslOptions& options,
                                     std::int64_t points_each) {
  switch (variant.form) {
    case RegionForm::elementwise:
      return points_each;
    case RegionForm::reduce_per_group:
    case RegionForm::rows_per_group: {
      const std::int64_t parts =
          options.subgroup_size > 0 ? variant.lanes / options.subgroup_size : variant.lanes;
      return points_each *
             (walks.count * (count_turns(space, variant, points_each) + 1) + walks.results * parts + 1);
    }
    default: {
      std::int64_t loops = 1;  // of the nest, every level counts
      for (std::int64_t extent : space.reduced) loops = (loops + 1) * extent;
      return points_each * (walks.count * (loops + 1) + 1);
    }
  }
}

/// One block, in the order that ArgumentLayout states.
void write_region_block(TableWriter& table, const Kernel& kernel, const Step& step, const RegionSpace& space,
                        const KernelVariant& variant, std::int64_t points) {
  const bool elementwise = variant.form == RegionForm::elementwise;
  const std::size_t inputs = kernel.inputs.size();
  const std::size_t first_output = inputs + static_cast<std::size_t>(kernel.index_count);
  const std::vector<bool> one_a_row = row_operands(kernel);
  std::vector<KernelView> views;
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    Dims strides = space.strides[k];
    if (one_a_row[k]) strides = Dims(strides.span().first(static_cast<std::size_t>(space.kept.rank())));
    views.push_back({&step.operands[k], k >= inputs && k < first_output, variant.access[k], strides});
  }
  const KernelArguments arguments(step, space.extents(), std::move(views));
  arguments.write_slots(table, step.scalars);
  table.integer(points, step);
  table.integer(elementwise ? space.kept_points * space.reduced_points : space.reduced_points, step);
  for (std::int64_t extent : space.extents()) table.integer(extent, step);
  arguments.write_integers(table);
  for (int d = 1; d <= argument_layout(kernel, variant).divisors; ++d)  // the table's integers are signed
    table.integer(static_cast<std::int32_t>(magic_divisor(space.extent(d))), step);
  TableWriter::check_fits(space.kept_points * space.reduced_points, step);  // numbers of linear elements
  table.align();
}

bool is_by_group(const KernelVariant& variant) {
  return variant.form == RegionForm::reduce_per_group || variant.form == RegionForm::rows_per_group;
}

bool has_rows(const Kernel& kernel) { return kernel.reduce || kernel.has_rows(); }

/// How the spaces are addressed, and where there are no rows which neighbours are taken together.
KernelVariant begin_variant(const Context& context, const Batch& batch) {
  KernelVariant variant;
  variant.rank = static_cast<std::uint8_t>(batch.spaces[0].rank());
  variant.reduce_rank = static_cast<std::uint8_t>(batch.spaces[0].reduced.rank());
  variant.access = common_access(batch.kernel, batch.spaces);
  if (!has_rows(batch.kernel)) take_neighbours(context, batch, INT64_MAX, variant);
  return variant;
}

/// Points that an invocation or a workgroup takes one of at a time.
std::int64_t points_of(const RegionSpace& space, const Kernel& kernel, const KernelVariant& variant) {
  return has_rows(kernel) ? space.kept_points
                          : (space.kept_points * space.reduced_points + variant.width - 1) / variant.width;
}

Hash128 key_of(const Kernel& kernel, const KernelVariant& variant) {
  Hash128 key = kernel.hash;
  const Hash128 variant_key = variant.hash();
  key.mix(variant_key.lo);
  key.mix(variant_key.hi);
  return key;
}

void dispatch_region(Encoder& encoder, const Batch& batch) {
  Context& context = encoder.context;
  const Kernel& kernel = batch.kernel;
  KernelVariant variant = begin_variant(context, batch);
  const Capabilities& can = context.device->capabilities();
  if (context.few_cores && context.glsl.subgroup_size > 0)
    variant.lanes = static_cast<std::uint16_t>(context.glsl.subgroup_size);
  const Walks walks(kernel);
  const std::int64_t per_group =
      has_rows(kernel) ? choose_rows(context, batch, walks, variant) : variant.lanes;
  const PipelinePtr pipeline =
      context.pipelines.generated(key_of(kernel, variant), kernel.name, is_by_group(variant),
                                  [&] { return to_glsl(kernel, variant, context.glsl); });

  std::int64_t most_points = 0;
  const std::uint32_t block = encoder.table.begin();
  for (std::size_t i = 0; i < batch.steps.size(); ++i) {
    const std::int64_t points = points_of(batch.spaces[i], kernel, variant);
    write_region_block(encoder.table, kernel, *batch.steps[i], batch.spaces[i], variant, points);
    most_points = std::max(most_points, points);
  }
  const auto iterations_with = [&](std::int64_t groups) {
    std::int64_t most = 0;
    for (const RegionSpace& space : batch.spaces) {
      const std::int64_t each =
          (points_of(space, kernel, variant) + groups * per_group - 1) / (groups * per_group);
      most = std::max(most, count_region_iterations(space, variant, walks, context.glsl, each));
    }
    return most + 1;
  };
  std::int64_t wanted = encoder.groups(most_points, per_group);
  if (variant.form == RegionForm::elementwise && variant.width > 1)
    wanted = std::min(wanted, kNeighbourGroups);
  std::int64_t groups = wanted;
  if (context.few_cores) {
    const auto instances = static_cast<std::int64_t>(batch.steps.size());
    const std::int64_t enough = std::max(kSoftwareGroups / instances, kFewestSoftwareGroups);
    groups =
        std::clamp(wanted * iterations_with(wanted) / kSoftwareIterations, kFewestSoftwareGroups, enough);
    groups = std::min(groups, wanted);
    while (groups < wanted && can.loop_limit > 0 && iterations_with(groups) > can.loop_limit / 2)
      groups = std::min(2 * groups, wanted);
  }
  Dispatch& made = encoder.dispatch(*batch.steps[0], pipeline, block, static_cast<std::uint32_t>(groups),
                                    iterations_with(groups), static_cast<std::uint32_t>(batch.steps.size()));
  const std::int64_t each = (most_points + groups * per_group - 1) / (groups * per_group);
  made.rounds = has_rows(kernel) ? each : 1;
  made.turns = count_turns(batch.largest(), variant, each);
}

/// The steps that have work, with their spaces.
Batch batch_of(const Kernel& kernel, std::span<const Step> joined) {
  Batch batch{kernel, {}, {}};
  for (const Step& step : joined) {
    RegionSpace space = make_space(step);
    if (space.kept_points == 0 || (!has_rows(kernel) && space.reduced_points == 0)) continue;
    batch.steps.push_back(&step);
    batch.spaces.push_back(std::move(space));
  }
  return batch;
}

/// The first instruction whose type the device does not compute with; none: null. A seed is read as two
/// words.
const Instruction* unsupported(const Context& context, const Kernel& kernel) {
  const auto found = std::ranges::find_if(kernel.code, [&](const Instruction& i) {
    return i.op != ScalarOp::scalar && !context.supports(i.type);
  });
  return found == kernel.code.end() ? nullptr : &*found;
}

}  // namespace

std::optional<FinishingRegions> encode_finishing(Encoder& encoder, std::int64_t lanes,
                                                 std::int64_t shared_left) {
  Context& context = encoder.context;
  const Kernel& kernel = *encoder.finishing[0].as<RegionStep>().kernel;
  if (unsupported(context, kernel) != nullptr || lanes > UINT16_MAX) return {};
  Batch batch = batch_of(kernel, encoder.finishing);
  if (batch.steps.empty() || !make_alike(batch.spaces)) return {};
  KernelVariant variant = begin_variant(context, batch);
  variant.finishes = true;
  variant.lanes = static_cast<std::uint16_t>(lanes);
  const Walks walks(kernel);
  const std::int64_t per_group =
      has_rows(kernel) ? choose_rows(context, batch, walks, variant) : variant.lanes;

  constexpr std::int64_t kOwn = 4;  // of what tells who is last
  if (kOwn + (is_by_group(variant) ? 8 * lanes * walks.results : 0) > shared_left) return {};

  FinishingRegions regions;
  const std::size_t blocks = batch.steps.size();
  regions.key = key_of(kernel, variant);
  regions.key.mix(blocks);
  regions.name = kernel.name;
  regions.text = [&kernel, variant, blocks, &context] {
    return finishing_glsl(kernel, variant, blocks, context.glsl);
  };
  for (const RegionSpace& space : batch.spaces) {
    const std::int64_t each = (points_of(space, kernel, variant) + per_group - 1) / per_group;
    regions.iterations += count_region_iterations(space, variant, walks, context.glsl, each) + 1;
  }
  const std::int64_t limit = context.device->capabilities().loop_limit;
  if (limit > 0 && regions.iterations > limit / 2) return {};
  regions.block = encoder.table.begin();
  for (std::size_t i = 0; i < blocks; ++i)
    write_region_block(encoder.table, kernel, *batch.steps[i], batch.spaces[i], variant,
                       points_of(batch.spaces[i], kernel, variant));
  encoder.finishing = {};
  return regions;
}

void encode_region(Encoder& encoder, const Kernel& kernel, std::span<const Step> joined) {
  if (const Instruction* i = unsupported(encoder.context, kernel))
    throw DTypeError(fmt::format("{} of {}: {} has no such type", info(i->op).name, name(i->type),
                                 encoder.context.device->physical().info.name));
  Batch batch = batch_of(kernel, joined);
  if (batch.steps.empty()) return;
  if (batch.steps.size() == 1 && encode_transpose(encoder, kernel, *batch.steps[0], batch.spaces[0])) return;
  if (batch.steps.size() <= kMaxJoined && make_alike(batch.spaces)) {
    dispatch_region(encoder, batch);
    return;
  }
  // Too many, or no common rank: a dispatch each. There is no hazard among them, so no barrier either.
  for (std::size_t i = 0; i < batch.steps.size(); ++i) {
    dispatch_region(encoder, {kernel, {batch.steps[i]}, {batch.spaces[i]}});
    encoder.computes(static_cast<std::size_t>(batch.steps[i] - joined.data()));
  }
}

}  // namespace caldera::vulkan
