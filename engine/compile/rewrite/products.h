// Products: sums of matrix products become one contraction with several segments of K.
//
// A low-rank update is the case in mind: x W + s ((x A) B) is one contraction, over K of x and W and then
// over the rank of x A and B, with any operand transposed. So are the gradients of a tensor that several
// products read. Sums stay in the order in which they are written: a bias between the two products is added
// to the first before the second is. Products of large operands that are computed stay apart: all segments
// would have to be there at once, while a sum takes them one by one.
#pragma once

#include "engine/compile/program/program.h"

namespace caldera {

/// A contraction node of several segments: inputs A0, B0, A1, B1, ..., then the scale of each segment whose
/// bit is set in attribute 1; attribute 0 is the number of segments.
struct SegmentList {
  int count = 1;
  std::int64_t scaled = 0;
};
SegmentList segments_of(const Program::Node& contract);

Program sum_products(Program program);

}  // namespace caldera
