#include "engine/autodiff/checkpoint/minimum_cut.h"

#include <algorithm>
#include <cmath>

namespace caldera {

void MinimumCut::add_edge(std::uint32_t from, std::uint32_t to, double capacity) {
  edges_[from].push_back({to, static_cast<std::uint32_t>(edges_[to].size()), capacity});
  edges_[to].push_back({from, static_cast<std::uint32_t>(edges_[from].size()) - 1, 0});
  if (std::isfinite(capacity)) negligible_ = std::max(negligible_, capacity * 1e-12);
}

bool MinimumCut::find_levels() {
  levels_.assign(edges_.size(), -1);
  levels_[source()] = 0;
  std::vector<std::uint32_t> open{source()};
  for (std::size_t k = 0; k < open.size(); ++k) {
    for (const Edge& edge : edges_[open[k]]) {
      if (edge.left <= negligible_ || levels_[edge.to] >= 0) continue;
      levels_[edge.to] = levels_[open[k]] + 1;
      open.push_back(edge.to);
    }
  }
  return levels_[sink()] >= 0;
}

double MinimumCut::push(std::uint32_t at, double most) {
  if (at == sink()) return most;
  double pushed = 0;
  for (std::size_t& k = next_[at]; k < edges_[at].size(); ++k) {
    Edge& edge = edges_[at][k];
    if (edge.left <= negligible_ || levels_[edge.to] != levels_[at] + 1) continue;
    const double through = push(edge.to, std::min(most - pushed, edge.left));
    edge.left -= through;
    edges_[edge.to][edge.back].left += through;
    pushed += through;
    if (most - pushed <= negligible_) break;
  }
  return pushed;
}

std::vector<bool> MinimumCut::source_side() {
  while (find_levels()) {
    next_.assign(edges_.size(), 0);
    push(source(), kEndless);
  }
  std::vector<bool> side(edges_.size() - 2);
  for (std::size_t i = 0; i < side.size(); ++i) side[i] = levels_[i] >= 0;
  return side;
}

}  // namespace caldera
