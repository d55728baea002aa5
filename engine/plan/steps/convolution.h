// Convolutions of images and their gradients.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/graph/convolution_node.h"
#include "engine/plan/steps/step_kind.h"

namespace caldera {

/// dims = the output's extents. operands: the two inputs, of the extents `a` and `b`, then the output; all of
/// one type, f32 or f64, and dense. What is computed of them: ConvolutionNode.
struct ConvolutionStep {
  ConvolutionNode what;
  Shape a, b;

  static std::string_view kind() { return "convolution"; }
  static std::string_view form() { return "contract"; }
  std::string name() const;
  static int output_count() { return 1; }
  static int named_operands() { return 2; }
  Shape operand_dims(const StepHeader& step, std::size_t k) const {
    return k == 0 ? a : k == 1 ? b : step.dims;
  }
  std::int64_t flops(const StepHeader& step) const {
    return static_cast<std::int64_t>(what.flops(a, b, step.dims));
  }
  void check(verify::StepForm& form) const;
};

}  // namespace caldera
