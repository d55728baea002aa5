#include "engine/device/vulkan/steps/attention_problem.h"

#include <algorithm>

namespace caldera::vulkan {
namespace {

using Axis = AttentionAxis;

constexpr std::int64_t kLargeWork = std::int64_t{1} << 24;  // multiplications: milliseconds on a processor

/// Loop iterations of the busiest invocation: every level of every loop.
std::int64_t count_iterations(const AttentionStep& attention, const AttentionSpace& space,
                              const AttentionBlocking& b, std::int64_t tasks_each) {
  const std::int64_t d = space.size(Axis::d), e = space.size(Axis::e);
  const bool forward = attention.pass == AttentionPass::forward;
  const bool of_keys = attention.pass == AttentionPass::grad_kv;
  const std::int64_t along = space.size(of_keys ? Axis::queries : Axis::keys);
  const auto product = [&](std::int64_t length) {
    return b.small_code ? length + 2 : length / 4 + length % 4 + 3;
  };
  const std::int64_t tile = b.tile_rows * (b.small_code ? b.tile_columns + 2 : 1) + 1;
  std::int64_t block = 1 + product(d) + tile + b.columns() + 1;
  block += forward ? tile : product(e);
  if (of_keys) block += b.columns() + 1;
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

std::int64_t AttentionBlocking::shared_bytes(AttentionPass pass) const {
  const bool forward = pass == AttentionPass::forward;
  const std::int64_t blocks = (forward ? 1 : 2) * rows() * (columns() + 1);
  const std::int64_t states = forward ? 4 * rows() * lane_columns : 0;
  return 4 * (blocks + states);
}

AttentionBlocking::AttentionBlocking(const Context& context, const AttentionStep& attention,
                                     const AttentionSpace& space) {
  const Capabilities& can = context.device->capabilities();
  const bool of_keys = attention.pass == AttentionPass::grad_kv;
  const std::int64_t d = space.size(Axis::d), e = space.size(Axis::e);
  const std::int64_t all_rows = space.size(of_keys ? Axis::keys : Axis::queries);
  const std::int64_t head = of_keys ? std::max(d, e) : attention.pass == AttentionPass::forward ? e : d;
  const std::int64_t work = space.batches() * space.size(Axis::queries) * space.size(Axis::keys) * (d + e);
  // A subgroup on the host's processor, where wide workgroups are slow; else a square of 64.
  const std::int64_t lanes = context.few_cores ? std::clamp<std::int64_t>(can.subgroup_size, 1, 32) : 64;
  // Sums that one invocation keeps. A GPU has them in registers; a processor in its first cache, but it takes
  // a second to compile them, which small work does not win back.
  const std::int64_t sums = !context.few_cores ? 64 : work >= kLargeWork ? 128 : 32;
  lane_columns = all_rows == 1 ? lanes : std::min<std::int64_t>(lanes, context.few_cores ? 4 : 8);
  lane_rows = lanes / lane_columns;
  each = std::max<std::int64_t>((head + lane_columns - 1) / lane_columns, 1);
  tile_rows = 8;
  const auto fits_shared = [&] { return shared_bytes(attention.pass) <= can.shared_memory; };
  while (tile_rows > 1 &&
         (tile_rows * each * (of_keys ? 2 : 1) > sums || rows() >= 2 * all_rows || !fits_shared()))
    tile_rows /= 2;
  one_subgroup = context.glsl.exact_subgroup_size && lanes == context.glsl.subgroup_size;
  tasks = (all_rows + rows() - 1) / rows() * space.batches();
  groups = static_cast<std::uint32_t>(std::min<std::int64_t>(tasks, can.max_groups));
  const std::int64_t tasks_each = groups == 0 ? 0 : (tasks + groups - 1) / groups;

  // Short loops as long as the driver does not end them, then fewer and larger turns.
  small_code = context.few_cores;
  const auto too_many = [&] {
    iterations = count_iterations(attention, space, *this, tasks_each);
    return can.loop_limit > 0 && iterations > can.loop_limit;
  };
  if (too_many()) small_code = false;
  while (too_many() && tile_columns < 16) {
    tile_columns *= 2;
    if (fits_shared()) continue;
    tile_columns /= 2;
    break;
  }
}

}  // namespace caldera::vulkan
