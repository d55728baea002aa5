#include "lm/nn/caches/attention_cache.h"

#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"

namespace caldera {

LazyTensor visible_by_position(const LazyTensor& queries, const LazyTensor& keys, const AttentionForm& form) {
  const auto window = static_cast<std::int32_t>(form.window.value_or(0));
  LazyTensor mask;
  if (!form.bidirectional)
    mask = less_equal(keys, queries);
  else if (form.window)
    mask = less(keys, queries + window);
  if (!form.window) return mask;
  const LazyTensor near = greater(keys, queries - window);
  return mask.defined() ? logical_and(mask, near) : near;
}

}  // namespace caldera
