#include "engine/plan/byte_range.h"

#include <numeric>

namespace caldera {
namespace {

std::int64_t element_size(const Plan& plan, const Operand& operand) {
  return static_cast<std::int64_t>(size_of(plan.buffers[static_cast<std::size_t>(operand.buffer)].dtype));
}

}  // namespace

ByteRange byte_range(const Plan& plan, const Step& step, std::size_t k) {
  const Operand& operand = step.operands[k];
  std::int64_t low = operand.offset;
  std::int64_t high = operand.offset;
  const auto extend = [&](std::int64_t extent, std::int64_t stride) {
    const std::int64_t reach = (extent - 1) * stride;
    (reach < 0 ? low : high) += reach;
  };
  const Shape dims = step.operand_dims(k);
  for (int d = 0; d < dims.rank(); ++d) {
    // An extent of 0 means that nothing is touched, except that an empty reduction still writes its result.
    if (dims[d] == 0 && operand.strides[d] != 0) return {};
    if (dims[d] > 0) extend(dims[d], operand.strides[d]);
  }
  if (const std::optional<IndexedAxis> axis = step.indexed_axis(k)) {
    if (axis->extent == 0) return {};
    extend(axis->extent, axis->stride);
  }
  if (operand.position >= 0) {
    for (const Position::Term& term : plan.positions[static_cast<std::size_t>(operand.position)].terms)
      extend(term.limit + 1, term.stride);
  }
  const std::int64_t size = element_size(plan, operand);
  return {low * size, (high + 1) * size};
}

bool ByteComb::apart_from(const ByteComb& other) const {
  if (hull.begin >= other.hull.end || other.hull.begin >= hull.end) return true;
  if (period == 0 || other.period == 0) return false;
  const std::int64_t common = std::gcd(period, other.period);
  if (tooth + other.tooth > common) return false;
  // From the start of one tooth to the start of the next one of the other comb.
  std::int64_t gap = (other.hull.begin - hull.begin) % common;
  if (gap < 0) gap += common;
  return gap >= tooth && gap + other.tooth <= common;
}

ByteComb byte_comb(const Plan& plan, const Step& step, std::size_t k) {
  ByteComb comb{.hull = byte_range(plan, step, k)};
  const Operand& operand = step.operands[k];
  if (comb.hull.empty() || !step.may_interleave(k) || operand.position >= 0) return comb;
  // A tooth is what the innermost dimensions cover without holes; the others move it. They are the operand's,
  // which may be others than the step's: those of quantised parts are.
  const Shape dims = step.operand_dims(k);
  std::int64_t tooth = 1;
  std::int64_t period = 0;
  for (int d = dims.rank() - 1; d >= 0; --d) {
    if (dims[d] == 1 || operand.strides[d] == 0) continue;
    if (period == 0 && operand.strides[d] == tooth) {
      tooth *= dims[d];
    } else {
      period = std::gcd(period, operand.strides[d]);
    }
  }
  if (period <= tooth) return comb;
  const std::int64_t size = element_size(plan, operand);
  comb.period = period * size;
  comb.tooth = tooth * size;
  return comb;
}

}  // namespace caldera
