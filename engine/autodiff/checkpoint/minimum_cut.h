// MinimumCut: the cheapest way to part a source from a sink, by maximum flow (Dinic 1970). Internal to the
// choice of what a backward pass keeps.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace caldera {

class MinimumCut {
 public:
  /// The capacity of an edge that is never cut.
  static constexpr double kEndless = std::numeric_limits<double>::infinity();

  /// Vertices 0 to count - 1, and source and sink besides.
  explicit MinimumCut(std::uint32_t count) : edges_(count + 2) {}

  std::uint32_t source() const { return static_cast<std::uint32_t>(edges_.size()) - 2; }
  std::uint32_t sink() const { return static_cast<std::uint32_t>(edges_.size()) - 1; }
  /// `capacity` >= 0: the cost where `from` is on the side of the source and `to` is not.
  void add_edge(std::uint32_t from, std::uint32_t to, double capacity);

  /// Says of each vertex whether it is on the side of the source: of all cheapest cuts the one with the
  /// fewest vertices there. To be called once. A path without an end to its capacity from source to sink must
  /// not be.
  std::vector<bool> source_side();

 private:
  struct Edge {
    std::uint32_t to;
    std::uint32_t back;  // where the reverse edge stands among those of `to`
    double left;
  };

  bool find_levels();
  double push(std::uint32_t at, double most);

  std::vector<std::vector<Edge>> edges_;  // by vertex
  std::vector<int> levels_;
  std::vector<std::size_t> next_;
  double negligible_ = 0;  // what is left of a capacity by rounding
};

}  // namespace caldera
