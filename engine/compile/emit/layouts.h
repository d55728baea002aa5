// Layouts: an intermediate result that is copied elsewhere is written there.
#pragma once

#include "engine/plan/plan.h"

namespace caldera {

/// Takes out steps that do nothing but copy all of one arena buffer
/// - to another, its dimensions in another order, by having every step that touches the former touch the
///   latter: the output of attention is head by head beside one another as soon as it is written;
/// - to a part of another buffer, also one that a position moves, by having the one step that writes the
///   former write the latter in the copy's place, if nobody else reads it: a new token's keys and values go
///   straight into the cache.
/// Left alone are buffers of which an operand could not say so by strides, or would lose neighbours that are
/// side by side. After emission, before anything is ordered.
void choose_layouts(Plan& plan);

}  // namespace caldera
