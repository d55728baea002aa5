// Regions: which nodes become one kernel.
//
// Every node is either a view of another (movement operations whose result a consumer can read by strides) or
// a root. A root has memory of its own unless it is absorbed into the region of its consumers. A region is
// named by its last root.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/compile/program.h"
#include "engine/compile/view.h"

namespace caldera {

struct CompileOptions {
  bool fusion = true;
};

/// Most instructions that a region may have, and most distinct operands (numbers are free): bounds the time a
/// device's compiler takes on one kernel.
inline constexpr std::uint32_t kMaxRegionNodes = 48;
inline constexpr std::uint32_t kMaxRegionInputs = 14;

/// An operand of a root: elements of another root, seen through a view with the extents of node `shape_of`.
struct Source {
  std::uint32_t root = 0;
  std::uint32_t shape_of = 0;
  const View* view = nullptr;
};

class Regions {
 public:
  Regions(const Program& program, const CompileOptions& options);

  const Program& program() const { return *program_; }
  const Program::Node& node(std::uint32_t i) const { return program_->nodes[i]; }
  /// Where the elements of node i are.
  Source source(std::uint32_t i) const;
  /// The operands of a root.
  std::vector<Source> operands(std::uint32_t root) const;
  /// A root that some output needs.
  bool is_live(std::uint32_t i) const { return live_[i]; }
  /// The region that root i belongs to.
  std::uint32_t region(std::uint32_t i) const { return region_[i]; }
  /// The roots absorbed into the region, inputs before users, ending with the region's own.
  const std::vector<std::uint32_t>& members(std::uint32_t region) const { return members_[region]; }
  /// The output that lies directly in the memory of root i, or -1.
  std::int32_t output_of(std::uint32_t i) const { return output_of_[i]; }

  /// Computed where it is used, never stored unless asked for: scalars and coordinates.
  bool is_free(std::uint32_t i) const {
    const OpClass kind = node(i).op->kind;
    return kind == OpClass::scalar || kind == OpClass::index;
  }
  /// A movement operation whose result no strided view describes: it copies.
  bool is_copy(std::uint32_t i) const;

 private:
  void find_views();
  void find_outputs_and_live();
  void group(const CompileOptions& options);

  const Program* program_;
  std::vector<std::uint32_t> representative_;
  std::vector<std::uint32_t> root_;
  std::vector<View> view_;
  std::vector<bool> live_;
  std::vector<std::uint32_t> region_;
  std::vector<std::int32_t> output_of_;
  std::vector<bool> stored_;  // someone reads it from memory
  std::vector<std::vector<std::uint32_t>> members_;
};

/// Extents over which the root's kernel runs: of its input for reductions and copies, its own otherwise.
const Shape& iteration_shape(const Regions& regions, std::uint32_t root);

}  // namespace caldera
