// Attention of few queries over many keys, as a decoded token has it, in parts of the keys side by side.
#pragma once

#include "engine/plan/device_traits.h"
#include "engine/plan/plan.h"

namespace caldera {

/// Changes forward steps of attention with at least kManyKeys keys, in two ways.
///
/// Heads of single queries that share their keys and values (grouped queries) become the queries of one head,
/// so that keys and values are read once for all of them.
///
/// Steps with fewer blocks of queries than the device can work on at a time become two steps: attention over
/// parts of the keys, each of which is a forward step's contract, and a row kernel that adds the parts up,
/// weighted by what they hold of the softmax's sum. Steps whose `highest` or `total` someone reads stay whole
/// (gradients do, whose steps have many queries). A part in which a row is masked by -infinity counts for
/// nothing there, whatever its values.
void split_attention(Plan& plan, const DeviceTraits& traits);

}  // namespace caldera
