#include "engine/compile/lower/lower.h"

#include "engine/compile/lower/split_attention.h"

namespace caldera {

void lower(Plan& plan, const DeviceTraits& traits) {
  if (traits.compute_units <= 0) return;
  split_attention(plan, traits);
}

}  // namespace caldera
