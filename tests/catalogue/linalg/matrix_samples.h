// Matrices for samples of linear algebra, and calls of them that are refused.
#pragma once

#include <vector>

#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {

/// Matrices that are far from singular: diagonals of 2, -4, 6, -8 ..., or all positive.
Operand apart(const Shape& shape, bool positive = false);
std::vector<ErrorSample> matrix_errors(const Operation& operation);
std::vector<ErrorSample> square_errors(const Operation& operation);

}  // namespace caldera::catalogue
