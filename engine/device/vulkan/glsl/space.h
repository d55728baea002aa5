// Coordinates and element numbers of the points of an iteration space.
#pragma once

#include <vector>

#include "engine/device/vulkan/glsl/operands.h"

namespace caldera {

/// Which dimensions a number counts over: all of them, those of the rows' space, those along a row.
enum class GlslPart : std::uint8_t { whole, kept, along };

/// Returns what a shader multiplies by to divide by d (1 to 2^31 - 1): see `quotient` of the library.
/// Dimension d of a block has the register m<d>, and h<d> for the shift, from the second dimension on.
std::uint32_t magic_divisor(std::int64_t d);

/// Declares c<d> of the part's dimensions where operands of `used` need them: the coordinates of its point
/// `number`.
void append_coordinates(const GlslOperands& operands, GlslPart part, const char* number,
                        const std::vector<bool>& used, GlslBody& body);
/// Declares element numbers of the operands in `used`: o<k> of a point (`whole`); k<k>, what the kept
/// dimensions give, and from it o<k> of a point of the row (`along`). What has one element a row has no o<k>
/// along it.
void append_offsets(const GlslOperands& operands, GlslPart part, const char* number,
                    const std::vector<bool>& used, GlslBody& body);

/// Every operand of the kernel.
std::vector<bool> all_operands(const GlslOperands& operands);

}  // namespace caldera
