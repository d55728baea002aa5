#include <fmt/format.h>

#include <algorithm>

#include "engine/base/error.h"
#include "lm/generate/drafter.h"

namespace caldera {

LookupDrafter::LookupDrafter(std::int64_t longest, std::int64_t shortest)
    : longest_(static_cast<std::size_t>(longest)), shortest_(static_cast<std::size_t>(shortest)) {
  if (shortest < 1 || longest < shortest)
    throw ValueError(fmt::format("LookupDrafter: from {} to {} tokens to look for", shortest, longest));
}

TokenDraft LookupDrafter::propose(const SamplingContext& text, std::int64_t count) {
  const std::span<const std::int32_t> seen = text.seen;
  TokenDraft draft;
  for (std::size_t n = std::min(longest_, seen.size()); n >= shortest_ && draft.ids.empty(); --n) {
    const std::span<const std::int32_t> last = seen.last(n);
    // The latest place but the end itself.
    const auto earlier = seen.first(seen.size() - 1);
    const auto found = std::find_end(earlier.begin(), earlier.end(), last.begin(), last.end());
    if (found == earlier.end()) continue;
    const auto next = seen.begin() + (found - earlier.begin()) + static_cast<std::ptrdiff_t>(n);
    const std::ptrdiff_t left = std::min<std::ptrdiff_t>(count, seen.end() - next);
    draft.ids.assign(next, next + left);
  }
  return draft;
}

}  // namespace caldera
