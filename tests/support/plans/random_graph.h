// Random graphs: a list of operations, each with the value that the reference gives it and a way to build it
// in the engine, on any device and as often as wanted.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "tests/support/plans/dense_reference.h"

namespace caldera::testing {

class RandomGraph {
 public:
  using Tensors = std::vector<LazyTensor>;

  /// What building a node may use: the device, and the tensors of the nodes before it.
  struct Scope {
    Device device;
    Tensors tensors;
    const LazyTensor& operator[](int node) const { return tensors[static_cast<std::size_t>(node)]; }
  };
  using Builder = std::function<LazyTensor(const Scope&)>;

  struct Node {
    std::string text;
    bool is_integer = false;
    Dense value;
    Builder build;
    bool is_large = false;  // nothing but a scaled copy is built upon it
  };

  /// Equal seeds give equal graphs. `real` is the dtype of floating nodes.
  RandomGraph(std::uint32_t seed, DType real);

  /// The graph's outputs on a device, all lazy.
  Tensors build(Device device) const;
  /// Node i on device place(i), with operands moved there from wherever they are.
  Tensors build(const std::function<Device(int)>& place) const;
  /// All of its nodes, in order.
  Tensors build_nodes(const std::function<Device(int)>& place) const;
  const std::vector<int>& outputs() const { return outputs_; }
  const Node& node(int i) const { return nodes_[static_cast<std::size_t>(i)]; }
  /// For the message of a failure.
  std::string to_string() const;

 private:
  static constexpr std::int64_t kMaxElements = 3000;

  // Choices.
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
  bool chance(int percent) { return below(100) < percent; }
  Shape random_shape();
  /// A shape that broadcasts with `shape`.
  Shape partner_shape(const Shape& shape);
  std::int64_t extent_of(int node, int axis) const { return shape(node)[axis]; }
  const Shape& shape(int i) const { return node(i).value.shape; }
  const Dense& value(int i) const { return node(i).value; }
  /// A floating node of at least this rank, more often a late one; a new leaf if there is none.
  int real_node(int min_rank = 0);
  int integer_node();
  int broadcast_partner(int node);
  std::vector<int> random_axes(const Shape& shape);
  Shape random_reshape(const Shape& shape);

  // Each adds one operation, or a few.
  int add(std::string text, Dense value, Builder build, bool is_integer = false);
  int add_real(std::string text, Dense value, Builder build);
  int real_leaf(const Shape& shape);
  int half_leaf(Dense values);
  int integer_leaf(const Shape& shape, int low, int high);
  void unary();
  void binary();
  void scalar();
  void constant();
  void integers();
  void where();
  void reduce();
  void matmul();
  void reshape();
  void permute();
  void slice();
  void broadcast();
  void take();
  void scatter_add();
  void pad();
  void concatenate();
  void normalisation();
  void low_rank();
  void attention();
  void rotary();

  std::mt19937 random_;
  DType real_;
  std::vector<Node> nodes_;
  std::vector<int> outputs_;
};

/// Whether `got` has the reference's values, to `allowed` times the largest of them (integers: exactly).
::testing::AssertionResult agrees(const LazyTensor& got, const Dense& wanted, double allowed);

}  // namespace caldera::testing
