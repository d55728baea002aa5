#include "engine/device/vulkan/pipelines/shader_parts.h"

#include <fmt/core.h>

#include <algorithm>

namespace caldera::vulkan {

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

BatchCoordinates batch_coordinates(int rank) {
  BatchCoordinates c;
  if (rank > 0) c.declarations = "uint batch_left = batch; ";
  for (int d = rank - 1; d >= 0; --d) {
    c.declarations +=
        fmt::format("const int batch_{0} = int(batch_left % uint(args.batch_extents[{0}])); ", d);
    if (d > 0) c.declarations += fmt::format("batch_left /= uint(args.batch_extents[{}]); ", d);
    c.names.insert(0, fmt::format("batch_{}, ", d));
  }
  return c;
}

}  // namespace caldera::vulkan
