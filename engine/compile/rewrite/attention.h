// Attention: softmax(score(q k^T)) v and its gradients become steps that never hold the scores in memory.
//
// Found by its form, whoever wrote it: a softmax over the last axis (with or without subtracting the
// maximum) of element-wise operations on one matrix product, all of one shape, multiplied by v. The gradient
// is found in the form that differentiation gives to it (or that a textbook does). What element-wise
// operations do to the scores (scale, masks, biases, caps) stays as it is, and so does what their
// differentiation gives: both become kernels inside the attention steps.
// Where the device joins gradients, and those of q and k come of one cotangent, one step makes all of them.
#pragma once

#include "engine/compile/program/program.h"
#include "engine/plan/device_traits.h"

namespace caldera {

Program find_attention(Program program, const DeviceTraits& traits);

}  // namespace caldera
