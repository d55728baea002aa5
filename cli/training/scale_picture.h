// Draws what `caldera scale` estimates.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace caldera::cli {

/// The efficiency (0 to 1) over one kind of link, by number of nodes.
struct ScaleLine {
  std::string link;
  std::vector<std::pair<double, double>> points;
};

/// Returns an SVG picture of the lines, nodes on a logarithmic axis; each line ends with its name.
std::string scale_picture(const std::vector<ScaleLine>& lines);

}  // namespace caldera::cli
