#include "training/trainer/scaling.h"

#include <algorithm>
#include <cmath>

#include "training/trainer/joined_tensors.h"

namespace caldera {

const std::vector<Link>& known_links() {
  static const std::vector<Link> kLinks{
      {"1GbE", 50e-6, 0.9 * 1e9 / 8},
      {"10GbE", 25e-6, 0.9 * 10e9 / 8},
      {"100Gb", 3e-6, 0.9 * 100e9 / 8},
      {"NVLink", 3e-6, 0.9 * 150e9},
      {"shared", 11e-6, 4e9}};  // two processes of one machine (measured_link)
  return kLinks;
}

ScaledRow scaled_row(const ScaledStep& step, const Link& link, std::int64_t nodes) {
  constexpr double kStateOfAdam = 8;
  const auto parameters = static_cast<double>(step.parameters), trained = static_cast<double>(step.trained);
  const auto tokens = static_cast<double>(step.tokens), n = static_cast<double>(nodes);
  const double gradients = 4 * trained;
  const double forward = 2 * parameters * tokens / step.flops;
  const double backward = 2 * (parameters + trained) * tokens / step.flops;
  ScaledRow row{.nodes = nodes, .compute = forward + backward};
  const double frozen = std::max(0.0, parameters - trained);
  row.rank_bytes = frozen * step.weight_bytes + trained * 4 + gradients + trained * kStateOfAdam;
  if (nodes == 1) return row;
  const auto part = static_cast<double>(detail::least_message_bytes(std::llround(gradients)));
  const double parts = std::max(1.0, std::floor(gradients / part));
  const double rounds = step.fast ? 2 * std::ceil(std::log2(n)) : 2 * (n - 1);
  row.traffic_bytes = 2 * gradients * (n - 1) / n;
  row.messages = parts * rounds * link.latency + row.traffic_bytes / link.bandwidth;
  const double last = row.messages / parts;
  row.waiting = last + std::max(0.0, row.messages - last - backward * (parts - 1) / parts);
  return row;
}

}  // namespace caldera
