// Turned products: the transpose of a product that nothing else reads is the product of the transposes.
//
// The gradient of a weight that a layer reads transposed, as nearly every layer does, is such a product. It
// is then made in the order of the weight, and what an optimiser reads of both are runs of memory.
#pragma once

#include "engine/compile/program/program.h"

namespace caldera {

/// Replaces each such transpose; the operands' transposes are views.
Program turn_products(Program program);

}  // namespace caldera
