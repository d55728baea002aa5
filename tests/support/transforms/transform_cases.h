// A row of a table of functions, and all that is checked of every row.
#pragma once

#include <string>
#include <vector>

#include "engine/autodiff/checkpoint/checkpoint.h"
#include "tests/support/transforms/gradcheck.h"
#include "tests/support/transforms/jvp_check.h"
#include "tests/support/transforms/vmap_check.h"

namespace caldera::testing {

/// A function of a table.
struct GradCase {
  std::string name;
  std::vector<Argument> arguments;
  TensorFunction function;
};

/// First and second derivatives, in reverse and forward mode, and forward over reverse; and the function and
/// its gradient over many examples at once; and all of it under checkpoint.
inline void check_case(const GradCase& row, const GradOptions& options = {}) {
  SCOPED_TRACE(row.name);
  const TensorFunction gradient = gradient_function(row.function);
  EXPECT_TRUE(gradients_agree(row.function, row.arguments, options)) << "first derivative";
  EXPECT_TRUE(gradients_agree(gradient, row.arguments, options)) << "second derivative";
  EXPECT_TRUE(tangents_agree(row.function, row.arguments, options)) << "tangent";
  EXPECT_TRUE(tangents_agree(gradient, row.arguments, options)) << "tangent of the gradient";
  EXPECT_TRUE(mapped_agrees(row.function, row.arguments, options)) << "mapped";
  EXPECT_TRUE(mapped_agrees(gradient, row.arguments, options)) << "gradient, mapped";
  const TensorFunction again = gradient_function(checkpoint(row.function));
  EXPECT_TRUE(gradients_agree(checkpoint(row.function), row.arguments, options)) << "under checkpoint";
  EXPECT_TRUE(gradients_agree(again, row.arguments, options)) << "second derivative, under checkpoint";
  EXPECT_TRUE(tangents_agree(again, row.arguments, options)) << "tangent of the gradient, under checkpoint";
  EXPECT_TRUE(mapped_agrees(again, row.arguments, options)) << "gradient, mapped, under checkpoint";
}

}  // namespace caldera::testing
