#include "engine/device/vulkan/steps/attention_problem.h"

#include <algorithm>

namespace caldera::vulkan {
namespace {

using Axis = AttentionAxis;

constexpr std::int64_t kMostMatrixHead = 128;  // of outputs that subgroups keep in cooperative matrices
constexpr std::int64_t kFewestMatrixRows = 16;
constexpr std::int64_t kMatrixLaneColumns = 8;
constexpr std::int64_t kStagedFours = 512;                  // for sums of rows: 8 KiB
constexpr std::int64_t kLargeWork = std::int64_t{1} << 24;  // multiplications: milliseconds on a processor

/// Loop iterations of the busiest invocation: every level of every loop.
std::int64_t count_attention_iterations(const AttentionStep& attention, const AttentionSpace& space,
                                        const AttentionBlocking& b, std::int64_t tasks_each) {
  const std::int64_t d = space.size(Axis::d), e = space.size(Axis::e);
  const bool forward = attention.pass == AttentionPass::forward;
  const bool of_keys = attention.pass == AttentionPass::grad_kv;
  const std::int64_t along = space.size(of_keys ? Axis::queries : Axis::keys);
  // What an invocation stages of `fours` fours.
  const auto staged = [&](std::int64_t fours) { return fours / (b.wide / 4) / b.lanes() + 2; };
  const auto product = [&](std::int64_t length) {
    if (b.variant.staged)
      return ((length + b.slice - 1) / b.slice) *
                 (staged(b.rows() * b.slice / 4) + staged(b.columns() * b.slice / 4) + 1) +
             1;
    return b.small_code ? length + 2 : length / 4 + length % 4 + 3;
  };
  if (b.cooperative) {
    const std::int64_t size = b.sub_rows * b.lane_columns / b.tile_rows;  // of a subgroup
    const std::int64_t scaled = (b.sub_rows / b.matrices.m) * ((b.d_pad + b.e_pad) / b.matrices.n) *
                                (b.matrices.m * b.matrices.n / size + 2);
    const std::int64_t all_staged = 2 * (b.columns() * std::max(b.d_pad, b.e_pad) / 8 / b.lanes() + 2);
    const std::int64_t turn = all_staged + scaled + 3 * b.tile_rows * (b.lane_columns + b.tile_columns + 2) +
                              (d + e) * b.sub_rows / 8 + b.columns() +
                              (forward ? 0 : 4 * b.tile_rows + 4 * b.columns());
    const std::int64_t turns = (along + b.columns() - 1) / b.columns() + 2;
    return tasks_each * (turns * turn + b.rows() * (b.d_pad + b.e_pad) / 8 / b.lanes() + 2 * scaled +
                         b.rows() + 10 * (space.batch.rank() + 1) + 1) +
           1;
  }
  const std::int64_t tile = b.tile_rows * (b.small_code ? b.tile_columns + 2 : 1) + 1;
  const std::int64_t sum = b.variant.staged
                               ? b.columns() / b.piece * (staged(b.piece * b.fours) + b.piece / 4 + 2) + 1
                               : b.columns() + 1;
  std::int64_t block = 1 + product(d) + tile + sum;
  block += forward ? tile : product(e);
  if (of_keys) block += sum;
  if (of_keys && attention.causal.fill >= 0) block += b.columns() + 1;
  // The probe of a part that may be left out.
  const std::int64_t probe = attention.causal.in_parts ? b.rows() * (b.lane_columns + 2) + block : 0;
  const std::int64_t blocks = (along + b.columns() - 1) / b.columns();
  const std::int64_t around = b.rows() + 2 * (b.tile_rows + 1) + b.tile_rows * (b.lane_columns + 1) +
                              10 * (space.batch.rank() + 1);  // ten views
  return tasks_each * (blocks * block + around + probe + 1) + 1;
}

}  // namespace

std::vector<AttentionOperand> attention_operands(const Step& step, const AttentionStep& attention) {
  const std::size_t outputs = step.first_output();
  std::vector<AttentionOperand> list = {
      {0, Axis::queries, Axis::d}, {1, Axis::keys, Axis::d}, {2, Axis::keys, Axis::e}};
  if (attention.pass == AttentionPass::forward) {
    list.push_back({outputs, Axis::queries, Axis::e});
    for (std::size_t row : {outputs + 1, outputs + 2}) list.push_back({row, Axis::queries, Axis::none});
    return list;
  }
  list.push_back({3, Axis::queries, Axis::e});
  for (std::size_t row : {4U, 5U, 6U}) list.push_back({row, Axis::queries, Axis::none});
  if (attention.pass == AttentionPass::grad_q) {
    list.push_back({outputs, Axis::queries, Axis::d});
  } else {
    list.push_back({outputs, Axis::keys, Axis::d});
    list.push_back({outputs + 1, Axis::keys, Axis::e});
  }
  return list;
}

AttentionSpace::AttentionSpace(const Step& step) {
  const bool in_parts = step.as<AttentionStep>().causal.in_parts;
  const int batch_rank = step.dims.rank() - 4;
  strides.resize(step.operands.size());
  for (int d = 0; d < batch_rank; ++d) {
    const std::int64_t extent = step.dims[d];
    if (extent == 1) continue;
    bool joins = !batch.empty() && !(in_parts && batch.rank() == 1);  // the parts stay a dimension
    for (std::size_t k = 0; joins && k < strides.size(); ++k)
      joins = strides[k].back() == step.operands[k].strides[d] * extent;
    if (joins) {
      batch[batch.rank() - 1] *= extent;
      for (std::size_t k = 0; k < strides.size(); ++k)
        strides[k][batch.rank() - 1] = step.operands[k].strides[d];
    } else {
      batch.push_back(extent);
      for (std::size_t k = 0; k < strides.size(); ++k) strides[k].push_back(step.operands[k].strides[d]);
    }
  }
  for (int d = batch_rank; d < step.dims.rank(); ++d) {
    sizes.push_back(step.dims[d]);
    for (std::size_t k = 0; k < strides.size(); ++k) strides[k].push_back(step.operands[k].strides[d]);
  }
}

std::int64_t AttentionSpace::batches() const {
  std::int64_t product = 1;
  for (std::int64_t extent : batch) product *= extent;
  return product;
}

std::int64_t AttentionSpace::size(Axis axis) const {
  return axis == Axis::none ? 1 : sizes[static_cast<int>(axis)];
}

std::int64_t AttentionSpace::stride(std::size_t operand, Axis axis) const {
  return axis == Axis::none ? 0 : strides[operand][batch.rank() + static_cast<int>(axis)];
}

Dims AttentionSpace::batch_strides(std::size_t operand) const {
  return Dims(strides[operand].span().first(static_cast<std::size_t>(batch.rank())));
}

std::int64_t AttentionBlocking::stage() const {
  return variant.staged && !cooperative ? std::max((rows() + columns()) * (slice / 4 + 1), piece * fours) : 0;
}

std::int64_t AttentionBlocking::shared_bytes(const AttentionStep& attention) const {
  const bool forward = attention.pass == AttentionPass::forward;
  const std::int64_t vote = forward && attention.causal.fill >= 0 ? 1 : 0;
  if (cooperative) {
    constexpr std::int64_t kPad = 8, kAligned = 16;  // elements; bytes ahead of blocks and weights
    if (!forward) {  // both factors of two products, two blocks of scores, what goes through the matrices
      const std::int64_t tiles = attention.pass == AttentionPass::grad_kv ? 2 : 1;
      const std::int64_t halves =
          (rows() + columns()) * (d_pad + kPad + e_pad + kPad) + tiles * rows() * (columns() + kPad);
      return 4 * (2 * rows() * (columns() + 4) + 1) + 2 * halves + kAligned * (1 + tiles);
    }
    const std::int64_t halves =
        rows() * (d_pad + kPad) + columns() * (std::max(d_pad, e_pad) + kPad) + rows() * (columns() + kPad);
    return 4 * (rows() * (columns() + 4) + rows() * lane_columns + rows() + 1 + vote) + 2 * halves + 2 * kAligned;
  }
  const std::int64_t blocks = (forward ? 1 : 2) * rows() * (columns() + 1);
  const std::int64_t states = forward ? (variant.staged ? 1 : 4) * rows() * lane_columns : 0;
  return 4 * (blocks + states + vote) + 16 * stage();
}

bool AttentionBlocking::set_matrices(const Capabilities& can, const AttentionStep& attention,
                                     const AttentionSpace& space, DType memory) {
  const bool forward = attention.pass == AttentionPass::forward;
  const std::int64_t d = space.size(Axis::d), e = space.size(Axis::e);
  const std::int64_t all_rows =
      space.size(attention.pass == AttentionPass::grad_kv ? Axis::keys : Axis::queries);
  const std::int64_t size = can.subgroup_size;
  cooperative = variant.cooperative && static_cast<bool>(can.matrix_f16) && can.storage_16bit &&
                memory == DType::f16 && std::min(d, e) > 0 && std::max(d, e) <= kMostMatrixHead &&
                all_rows >= kFewestMatrixRows && size >= kMatrixLaneColumns;
  if (!cooperative) return false;
  matrices = can.matrix_f16;
  const auto whole = [](std::int64_t x, std::int64_t side) {
    const std::int64_t unit = std::max<std::int64_t>(side, 8);
    return (x + unit - 1) / unit * unit;
  };
  // Gradients multiply by either of them along both sides of the matrices, which are powers of two.
  const std::int64_t both = forward ? 0 : std::max(matrices.n, matrices.k);
  d_pad = whole(d, std::max<std::int64_t>(matrices.k, both));
  e_pad = whole(e, std::max<std::int64_t>(matrices.n, both));
  sub_rows = std::max<std::int64_t>(matrices.m, kFewestMatrixRows);
  lane_columns = kMatrixLaneColumns;
  tile_rows = std::max<std::int64_t>(sub_rows * lane_columns / size, 1);
  tile_columns = Capabilities::kMatrixSide / lane_columns;
  wide = 8;
  // Gradients have twice the tiles: two subgroups leave room for a second workgroup.
  for (subgroups = forward ? 4 : 2; subgroups > 0; subgroups /= 2) {
    lane_rows = subgroups * size / lane_columns;
    const bool is_used = subgroups == 1 || subgroups / 2 * sub_rows < all_rows;
    if (is_used && rows() == subgroups * sub_rows && lanes() <= can.max_invocations &&
        subgroups <= can.max_subgroups && shared_bytes(attention) <= can.shared_memory)
      return true;
  }
  cooperative = false;
  tile_columns = 4;
  return false;
}

void AttentionBlocking::set_lanes(const Context& context, const AttentionStep& attention,
                                  const AttentionSpace& space, DType memory) {
  const Capabilities& can = context.device->capabilities();
  const bool of_keys = attention.pass == AttentionPass::grad_kv;
  const std::int64_t d = space.size(Axis::d), e = space.size(Axis::e);
  const std::int64_t all_rows = space.size(of_keys ? Axis::keys : Axis::queries);
  const std::int64_t head = of_keys ? std::max(d, e) : attention.pass == AttentionPass::forward ? e : d;
  const std::int64_t work = space.batches() * space.size(Axis::queries) * space.size(Axis::keys) * (d + e);
  const std::int64_t own = variant.lanes == 0
                               ? std::clamp<std::int64_t>(can.subgroup_size, 1, 32)
                               : (all_rows <= AttentionVariant::kFewRows ? variant.few_lanes : variant.lanes);
  const std::int64_t lanes = std::min<std::int64_t>(own, can.max_invocations);
  const std::int64_t sums = work >= kLargeWork ? variant.sums : variant.few_sums;
  lane_columns = all_rows == 1 ? lanes : std::min(lanes, variant.columns);
  lane_rows = lanes / lane_columns;
  while (variant.staged && lane_rows > 1 && lane_rows >= 2 * all_rows) {
    lane_rows /= 2;
    lane_columns *= 2;
  }
  each = std::max<std::int64_t>((head + lane_columns - 1) / lane_columns, 1);
  wide = 16 / static_cast<std::int64_t>(size_of(memory));
  if (variant.staged) {
    slice = variant.slice;
    fours = (head + wide - 1) / wide * (wide / 4);
    each = (fours + lane_columns - 1) / lane_columns * 4;
    if (lane_columns > 16) tile_columns = 2;
    while (2 * piece <= columns() && 2 * piece * fours <= kStagedFours) piece *= 2;
  }
  tile_rows = variant.tile_rows;
  const auto fits_shared = [&] { return shared_bytes(attention) <= can.shared_memory; };
  while (tile_rows > 1 &&
         (tile_rows * each * (of_keys ? 2 : 1) > sums || rows() >= 2 * all_rows || !fits_shared()))
    tile_rows /= 2;
  while (variant.staged && !fits_shared() && (piece > 4 || slice > 8)) {
    if (piece > 4) piece /= 2;
    if (slice > 8) slice /= 2;
  }
}

AttentionBlocking::AttentionBlocking(const Context& context, const AttentionStep& attention,
                                     const AttentionSpace& space, DType memory)
    : variant(*context.attention) {
  const Capabilities& can = context.device->capabilities();
  if (!set_matrices(can, attention, space, memory)) set_lanes(context, attention, space, memory);
  one_subgroup = context.glsl.exact_subgroup_size && lanes() == context.glsl.subgroup_size;
  const std::int64_t all_rows =
      space.size(attention.pass == AttentionPass::grad_kv ? Axis::keys : Axis::queries);
  tasks = (all_rows + rows() - 1) / rows() * space.batches();
  groups = static_cast<std::uint32_t>(std::min<std::int64_t>(tasks, can.max_groups));
  const std::int64_t tasks_each = groups == 0 ? 0 : (tasks + groups - 1) / groups;

  // Short loops as long as the driver does not end them, then fewer and larger turns.
  small_code = variant.small_code || (cooperative && context.few_cores);
  const auto too_many = [&] {
    iterations = count_attention_iterations(attention, space, *this, tasks_each);
    return can.loop_limit > 0 && iterations > can.loop_limit;
  };
  if (too_many()) small_code = false;
  while (!cooperative && too_many() && tile_columns < 16) {
    tile_columns *= 2;
    if (shared_bytes(attention) <= can.shared_memory) continue;
    tile_columns /= 2;
    break;
  }
}

}  // namespace caldera::vulkan
