// StepHeader: what steps of every kind have.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/plan/steps/operand.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace caldera {

struct StepHeader {
  DType dtype = DType::f32;     // of the result
  bool barrier_before = false;  // there is a hazard with a step since the last barrier
  bool joined = false;    // runs in the dispatch of the step before it: a region with the same kernel, or a
                          // contraction with the same epilogue, segments, factors and types, of whatever
                          // extents and strides; there is no hazard with any step of that dispatch
  bool follows = false;   // joined to one other product, as which it is but for the epilogue: over the same
                          // space, it may read at each point what that one writes at the same point. Whoever
                          // computes a point of the former computes it of this one, afterwards
  bool finishes = false;  // a region, and those joined to it: a device may run them at the end of the
                          // dispatch before, by the workgroup of it that ends last. The barrier ahead of it
                          // waits for that dispatch alone then, and the next dispatch has one too, so it is
                          // also right to run them as a dispatch of their own
  Shape dims;             // iteration space
  std::vector<Operand> operands;
  std::vector<std::int32_t> scalars;  // the plan's scalar for each scalar argument, kernel after kernel (see
                                      // Step::kernels)
  std::string label;                  // what the step was recognised as: "softmax", "lora"; may be empty
  std::vector<std::uint32_t> nodes;   // positions in the program of the nodes that it computes
};

}  // namespace caldera
