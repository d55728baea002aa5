// checkpoint: functions whose inside is computed again for the backward pass instead of kept.
#pragma once

#include "engine/autodiff/checkpoint/keep.h"
#include "engine/autodiff/function.h"

namespace caldera {

/// Returns a function that gives the bits of `function`. When its results are differentiated in reverse, what
/// it computed from its arguments is not kept for the backward pass, but for what `keep` chooses: that
/// computes it again from the arguments and from what is kept, once the cotangents are there. Memory for
/// time; a deep chain of n steps under checkpoint every sqrt(n) of them keeps O(sqrt(n)) values. What does
/// not depend on an argument is kept. Tensors that the function captures are differentiated as ever. Nests
/// with all transforms and with itself: forward-mode derivatives keep nothing anyway, reverse over forward
/// computes value and tangent again, and the backward pass is checkpointed itself, so that reverse over
/// reverse (to any depth) keeps of it what stands at the seams and computes the rest again. Evaluating inside
/// is allowed where it is in the function that is differentiated (inside of value_and_grad and the like).
///
/// Throws ValueError for an empty function, argument or result. May be called from any thread if `function`
/// may.
VectorFunction checkpoint(VectorFunction function, const Keep& keep = {});
TensorFunction checkpoint(TensorFunction function, const Keep& keep = {});
UnaryFunction checkpoint(UnaryFunction function, const Keep& keep = {});

}  // namespace caldera
