// Pieces of shaders that are put together at run time from hand-written text and kernels.
#pragma once

#include <string>

namespace caldera::vulkan {

/// Returns the text as one line, for a definition.
std::string one_line(std::string text);

/// A batch's coordinates, from its number `batch` and `args.batch_extents`.
struct BatchCoordinates {
  std::string declarations;
  std::string names;  // "batch_0, batch_1, " outermost first: the head of a list of arguments
};
BatchCoordinates batch_coordinates(int rank);

}  // namespace caldera::vulkan
