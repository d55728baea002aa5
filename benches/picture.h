// The results beside their peer as a picture: every row a dot, a line for each family of rows.
#pragma once

#include <span>
#include <string>

#include "benches/runner.h"

namespace caldera::bench {

/// Draws an SVG of the rows that have a peer: this engine's time over the peer's, on a logarithmic axis,
/// where what lies left of 1 is faster here. A row's name and figures show under the pointer; rows above 1.05
/// carry their name. Without such rows the picture says so.
std::string to_svg(std::span<const Result> results);

}  // namespace caldera::bench
