#include "cli/training/scale_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace caldera::cli {
namespace {

// Of the picture, and of the field in it.
constexpr double kWidth = 640, kHeight = 320, kLeft = 56, kRight = 540, kTop = 24, kBottom = 272;
constexpr std::array<const char*, 6> kColors{"#0072b2", "#d55e00", "#009e73",
                                             "#cc79a7", "#56b4e9", "#8a6d00"};

}  // namespace

std::string scale_picture(const std::vector<ScaleLine>& lines) {
  double first = 1e300, last = 1;
  for (const ScaleLine& line : lines)
    for (const auto& [nodes, efficiency] : line.points) {
      first = std::min(first, nodes);
      last = std::max(last, nodes);
    }
  const auto x = [&](double nodes) {
    return last > first ? kLeft + (kRight - kLeft) * std::log2(nodes / first) / std::log2(last / first)
                        : kLeft;
  };
  const auto y = [](double efficiency) { return kBottom - (kBottom - kTop) * efficiency; };
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:g} {1:g}\" font-family=\"sans-serif\" "
      "font-size=\"12\">\n<rect width=\"{0:g}\" height=\"{1:g}\" fill=\"#ffffff\"/>\n",
      kWidth, kHeight);
  const auto text = [&](double at_x, double at_y, const char* anchor, const std::string& words,
                        const char* color = "#333333") {
    svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"{}\" fill=\"{}\">{}</text>\n", at_x,
                       at_y, anchor, color, words);
  };
  for (int percent = 0; percent <= 100; percent += 25) {
    const double at = y(percent / 100.0);
    svg += fmt::format("<line x1=\"{:g}\" y1=\"{:.1f}\" x2=\"{:g}\" y2=\"{:.1f}\" stroke=\"#dddddd\"/>\n",
                       kLeft, at, kRight, at);
    text(kLeft - 6, at + 4, "end", fmt::format("{} %", percent));
  }
  for (double nodes = first; nodes <= last; nodes *= 2)
    text(x(nodes), kBottom + 18, "middle", fmt::format("{:g}", nodes));
  text((kLeft + kRight) / 2, kBottom + 38, "middle", "nodes");
  text(kLeft, kTop - 8, "start", "efficiency");
  double before = -1e300;
  std::vector<std::size_t> order(lines.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::ranges::stable_sort(order, {}, [&](std::size_t i) {
    return lines[i].points.empty() ? 0.0 : -lines[i].points.back().second;
  });
  for (const std::size_t i : order) {
    const ScaleLine& line = lines[i];
    if (line.points.empty()) continue;
    const char* const color = kColors[i % kColors.size()];
    std::string points;
    for (const auto& [nodes, efficiency] : line.points)
      points += fmt::format("{:.1f},{:.1f} ", x(nodes), y(efficiency));
    svg += fmt::format("<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"2\"/>\n", points,
                       color);
    before = std::max(before + 14, y(line.points.back().second) + 4);  // names do not cover one another
    text(x(line.points.back().first) + 6, before, "start", line.link, color);
  }
  return svg + "</svg>\n";
}

}  // namespace caldera::cli
