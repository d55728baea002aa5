#include "engine/device/vulkan/attention/families/attention_family.h"

#include <algorithm>

namespace caldera::vulkan {
namespace {

constexpr std::int64_t kLargeWork = std::int64_t{1} << 24;  // multiplications: milliseconds on a processor

std::int64_t multiplications(const AttentionProblem& problem) {
  return problem.space.batches() * problem.rows() * problem.others() * (problem.d() + problem.e());
}

}  // namespace

std::string AttentionFamily::why_not(const Capabilities& /*can*/) const { return {}; }

std::int64_t attention_head(const AttentionProblem& problem) {
  if (problem.is_of_keys()) return std::max(problem.d(), problem.e());
  return problem.is_forward() ? problem.e() : problem.d();
}

AttentionBlocking AttentionLanes::grid(const AttentionProblem& problem) const {
  AttentionBlocking b;
  const std::int64_t own = lanes == 0 ? std::clamp<std::int64_t>(problem.can.subgroup_size, 1, 32)
                                      : (problem.rows() <= kFewRows ? few_lanes : lanes);
  const std::int64_t all = std::min<std::int64_t>(own, problem.can.max_invocations);
  b.lane_columns = problem.rows() == 1 ? all : std::min(all, columns);
  b.lane_rows = all / b.lane_columns;
  return b;
}

void AttentionLanes::fit_tiles(AttentionBlocking& b, const AttentionProblem& problem,
                               const AttentionFamily& family) const {
  const std::int64_t most = multiplications(problem) >= kLargeWork ? sums : few_sums;
  const std::int64_t outputs = problem.is_of_keys() ? 2 : 1;
  const auto fits_shared = [&] {
    return family.shared_bytes(b, problem.attention) <= problem.can.shared_memory;
  };
  b.tile_rows = tile_rows;
  while (b.tile_rows > 1 &&
         (b.tile_rows * b.each * outputs > most || b.rows() >= 2 * problem.rows() || !fits_shared()))
    b.tile_rows /= 2;
}

std::int64_t AttentionLoops::iterations(const AttentionBlocking& b, const AttentionProblem& problem,
                                        std::int64_t tasks) const {
  const AttentionStep& attention = problem.attention;
  const std::int64_t tile = b.tile_rows * (b.small_code ? b.tile_columns + 2 : 1) + 1;
  std::int64_t block = 1 + product_d + tile + sum;
  block += problem.is_forward() ? tile : product_e;
  if (problem.is_of_keys()) block += sum;
  if (problem.is_of_keys() && attention.causal.fill >= 0) block += b.columns() + 1;
  // The probe of a part that may be left out.
  const std::int64_t probe = attention.causal.in_parts ? b.rows() * (b.lane_columns + 2) + block : 0;
  const std::int64_t blocks = (problem.others() + b.columns() - 1) / b.columns();
  const std::int64_t around = b.rows() + 2 * (b.tile_rows + 1) + b.tile_rows * (b.lane_columns + 1) +
                              10 * (problem.space.batch.rank() + 1);  // ten views
  return tasks * (blocks * block + around + probe + 1) + 1;
}

}  // namespace caldera::vulkan
