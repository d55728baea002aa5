// Finds where an output of a step may be stored in the memory of something that the step reads.
#pragma once

#include <cstddef>

#include "engine/plan/plan.h"

namespace caldera {

/// Whether operand `out` of the step, an output, may be written over operand `in`, an input, as far as the
/// step itself goes: every point reads exactly the elements that it writes, in buffers of one size, and
/// nothing else in the step touches either buffer. That holds for kernels of the element-wise and the row
/// form, and for the operands of a contraction's epilogue; products, attention and indexed steps read other
/// points' elements. Lifetimes are the caller's affair.
bool may_write_over(const Plan& plan, const Step& step, std::size_t out, std::size_t in);

/// Lists the donations that are possible in a plan whose memory and barriers are final, for the outputs that
/// were asked for. None costs a barrier.
void find_donations(Plan& plan);

}  // namespace caldera
