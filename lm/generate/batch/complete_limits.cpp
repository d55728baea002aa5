#include "lm/generate/batch/complete_limits.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>

#include "lm/generate/cache/paged_forward.h"

namespace caldera::detail {
namespace {

constexpr std::int64_t kUsualContext = 2048;

}  // namespace

BatchLimits completed(BatchLimits limits, const ModelConfig& config) {
  const auto positive = [](const char* name, std::int64_t value, std::int64_t least) {
    if (value < least)
      throw ValueError(fmt::format("BatchGenerator: {} is {}; it is to be {} or more", name, value, least));
  };
  positive("max_batch", limits.max_batch, 1);
  positive("max_queue", limits.max_queue, 0);
  positive("max_context", limits.max_context, 0);
  positive("cache_positions", limits.cache_positions, 0);
  positive("prefill_chunk", limits.prefill_chunk, 1);
  constexpr std::int64_t kMostPositions = std::int64_t{1} << 30;  // slots are int32
  if (limits.cache_positions > kMostPositions || limits.max_batch > kMostPositions / kUsualContext)
    throw ValueError(
        fmt::format("BatchGenerator: max_batch {} and cache_positions {} are above what a cache holds",
                    limits.max_batch, limits.cache_positions));
  const std::int64_t positions = config.max_positions();
  if (limits.max_context == 0 || limits.max_context > positions) limits.max_context = positions;
  if (limits.cache_positions == 0)
    limits.cache_positions = limits.max_batch * std::min(limits.max_context, kUsualContext);
  constexpr std::int64_t kPage = PagedForward::kPagePositions;
  limits.cache_positions = (limits.cache_positions + kPage - 1) / kPage * kPage;
  // A request that is alone is to fit.
  limits.max_context = std::min(limits.max_context, limits.cache_positions);
  return limits;
}

}  // namespace caldera::detail
