// Placement: where every value of a program lives, before it is decided what is computed together.
//
// Every node is either a view of another (movement operations whose result a consumer can read by strides,
// and 16-bit data seen as f32) or a root. A root has memory of its own unless it is computed where it is
// used: inside the group of its consumers, or again by each of them (numbers and coordinates, and cheap
// functions of such). A part that only a concatenation reads is written straight to where it comes to be.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/compile/program/program.h"
#include "engine/compile/program/view.h"

namespace caldera {

/// An operand of a root: elements of another root, seen through a view with the extents of node `shape_of`.
struct Source {
  std::uint32_t root = 0;
  std::uint32_t shape_of = 0;
  const View* view = nullptr;
};

/// Says where a root's elements are inside the memory of a concatenation.
struct ConcatPart {
  std::uint32_t whole = 0;
  View view;  // over the root's extents
};

class Placement {
 public:
  Placement(const Program& program, bool fusion);

  const Program& program() const { return *program_; }
  const Program::Node& node(std::uint32_t i) const { return program_->nodes[i]; }
  /// Returns where the elements of node i are.
  Source source(std::uint32_t i) const { return {root_[i], i, &view_[i]}; }
  Source operand(std::uint32_t root, std::size_t k) const { return source(program_->inputs_of(root)[k]); }
  /// Calls visit(root) for each root that what reads node i has to come after, by the barriers between node i
  /// and its root.
  template <class Visit>
  void for_each_awaited(std::uint32_t i, Visit visit) const {
    if (last_barrier_.empty()) return;
    for (std::uint32_t b = last_barrier_[i]; b != kNoRoot; b = last_barrier_[program_->inputs_of(b)[0]]) {
      for (std::uint32_t input : program_->inputs_of(b).subspan(1)) visit(root_[input]);
    }
  }
  /// Whether a barrier is between node i and its root.
  bool is_behind_barrier(std::uint32_t i) const {
    return !last_barrier_.empty() && last_barrier_[i] != kNoRoot;
  }
  std::size_t operand_count(std::uint32_t root) const { return node(root).input_count; }
  /// A root that some output needs.
  bool is_live(std::uint32_t i) const { return live_[i]; }
  /// The output that is directly in the memory of root i, or -1.
  std::int32_t output_of(std::uint32_t i) const { return output_of_[i]; }
  /// Its elements are read as an output of the program, through whatever view.
  bool is_output(std::uint32_t i) const { return is_output_[i]; }

  /// A root that is a number or a coordinate.
  bool is_free(std::uint32_t i) const {
    const OpClass kind = node(i).op->kind;
    return kind == OpClass::scalar || kind == OpClass::index;
  }
  /// A root that is computed again by whoever reads it: a cheap function of numbers and coordinates.
  bool is_generated(std::uint32_t i) const { return generated_[i]; }
  /// Whether a free or generated root can be computed in place when seen through `view` with extents `space`.
  bool can_generate(std::uint32_t root, const View& view, const Shape& space) const;

  /// Whether a slice that numbers move is read where its operand is. Otherwise that is written out first.
  bool is_moved_in_place(std::uint32_t i) const;

  /// A movement operation whose result no strided view describes: it copies.
  bool is_copy(std::uint32_t i) const;
  /// A root whose kernel evaluates an expression for each element.
  bool is_expression(std::uint32_t i) const;
  /// A root that is written straight into a concatenation.
  const std::optional<ConcatPart>& part(std::uint32_t i) const { return part_[i]; }

 private:
  /// A conversion of 16 bits to f32.
  bool is_widening(std::uint32_t i) const;
  /// Whether the value has memory in its own type anyway: its readers may as well read that, which is widened
  /// as it is loaded.
  bool widens_stored(std::uint32_t i) const;
  /// Notes which nodes are read otherwise than by a widening.
  void find_kept();
  void find_views();
  View moved_view(std::uint32_t i) const;
  bool is_stored(std::uint32_t root) const;
  void find_barriers();
  void find_outputs_and_live();
  void find_generated();
  void find_parts();
  bool generates(std::uint32_t root, const View& view, const Shape& space, int depth) const;

  const Program* program_;
  std::vector<std::uint32_t> root_;
  std::vector<View> view_;
  std::vector<bool> live_, is_output_, generated_, kept_;
  std::vector<std::int32_t> output_of_;
  std::vector<std::uint32_t> last_barrier_;  // of views: the nearest behind them. Empty without barriers
  std::vector<std::optional<ConcatPart>> part_;
};

/// Extents over which the root's kernel runs: of its input for reductions and copies, its own otherwise.
const Shape& iteration_shape(const Placement& placement, std::uint32_t root);

}  // namespace caldera
