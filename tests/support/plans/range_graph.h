// Random graphs over the whole range of a type, 1e-38 to 1e38 (f16: to 6e4), with bounds for every element.
//
// Beside the f64 value of each node stands an interval that holds what an evaluation may give that computes
// the program as it is written, operation by operation: every operation is rounded once in the type of its
// tensor (twice that is allowed; transcendental functions more), results below the least normal number may be
// lost, sums may be added in any order. Where an interval leaves the range of the type, or a sum's absolute
// values do, anything may come out of it and of what is built upon it. Nothing else is forgiven.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/plans/ranges.h"

namespace caldera::testing {

class RangeGraph {
 public:
  using Tensors = std::vector<LazyTensor>;
  using Builder = std::function<LazyTensor(const Tensors&, Device)>;

  struct Node {
    std::string text;
    Ranges ranges;
    Builder build;
    std::vector<int> inputs;
    bool any_order = true;  // no order of a sum on the way may overflow
  };

  /// Equal seeds give equal graphs. `real`: f32, f16 or bf16.
  RangeGraph(std::uint32_t seed, DType real);

  /// All nodes, lazy.
  Tensors build(Device device) const;
  const std::vector<int>& outputs() const { return outputs_; }
  const Node& node(int i) const { return nodes_[static_cast<std::size_t>(i)]; }
  int size() const { return static_cast<int>(nodes_.size()); }
  /// For each node whether it is finite, and so is all that it is made of, in `values`.
  std::vector<bool> finite_all_the_way(const std::vector<std::vector<double>>& values) const;
  std::string to_string() const;

 private:
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  bool chance(int percent) { return below(100) < percent; }
  double magnitude();
  const Shape& shape(int i) const { return node(i).ranges.shape(); }
  int some(int min_rank = 0);
  int partner(const Shape& shape);
  double scalar_value();

  int add(std::string text, Ranges ranges, Builder build, std::vector<int> inputs);
  int leaf(const Shape& shape);
  using OfOne = std::function<Interval(const Interval&)>;
  using OfTwo = std::function<Interval(const Interval&, const Interval&)>;
  /// Rounds outwards, by `units` of the type.
  Interval rounded(Interval x, double units = 2) const;
  int map(const char* name, int x, LazyTensor (*engine)(const LazyTensor&), const OfOne& f, double units);
  int zip(const char* name, int a, int b, LazyTensor (*engine)(const LazyTensor&, const LazyTensor&),
          const OfTwo& f);
  int scaled(int x, double k);
  int product(int a, int b);
  int sum(int x, std::vector<int> axes);
  int extreme(int x, int axis, bool highest);
  int transposed(int x);
  int sliced(int x, int axis, std::int64_t begin, std::int64_t count);
  int padded(int x, int axis, std::int64_t low, std::int64_t high);
  int moved(std::string text, int x, const std::function<Dense(const Dense&)>& f, Builder build);

  void unary();
  void binary();
  void scalar();
  void reduce();
  void matmul();
  void products();
  void movement();
  void parts();
  void joined();
  void softmax();
  void attention();

  std::mt19937 random_;
  DType real_;
  double unit_, least_, most_;
  std::vector<Node> nodes_;
  std::vector<int> outputs_;
};

/// The elements as doubles.
std::vector<double> values_of(const LazyTensor& x);

/// Whether `got` is within the bounds of a node. `must_be_finite`: where the bounds say nothing, finite
/// reference values still ask for finite ones.
::testing::AssertionResult lies_within(const std::vector<double>& got, const RangeGraph::Node& node,
                                       bool must_be_finite);

}  // namespace caldera::testing
