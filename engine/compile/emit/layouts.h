// Layouts: an intermediate result that is copied to another order of its elements is written in that order.
#pragma once

#include "engine/plan/plan.h"

namespace caldera {

/// Takes out steps that do nothing but copy all of one arena buffer to another, its dimensions in another
/// order, by having every step that touches the former touch the latter: the output of attention lies head by
/// head beside one another as soon as it is written. Left alone are buffers of which an operand could not say
/// so by strides, or would lose neighbours that lie side by side. After emission, before anything is ordered.
void choose_layouts(Plan& plan);

}  // namespace caldera
