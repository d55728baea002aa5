// Simplification: the same values from fewer nodes.
#pragma once

#include "engine/compile/program/program.h"

namespace caldera {

/// Drops identities and what nobody needs; makes equal nodes one. With `rewrite` also:
///   - -(-x) is x, a sum over a broadcast number is a product, and a product with ones is the other factor
///     (gradients begin with ones);
///   - a sum of zero-padded tensors with disjoint contents is a concatenation (gradients of slices);
///   - element-wise operations move from a concatenation to its parts (rotary embeddings), so that every part
///     is computed where it comes to be;
///   - a sum of permuted tensors is the permuted sum (gradients of transposed weights).
/// Results keep their IEEE values, but that -0 + 0 may be -0 and that a sum of equal numbers rounds once. In
/// 16-bit types, which are rounded where they are stored, a node less may also be a rounding less.
/// What would change the range in which a value is held is left as it is: a number that multiplies an operand
/// of a product is no factor of the product, whose terms may be too large or too small without it.
Program simplify(const Program& program, bool rewrite);

}  // namespace caldera
