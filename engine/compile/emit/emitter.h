// Emitter: groups become steps over buffers. Its parts are in emit_*.cpp, one for each kind of step.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/compile/fuse/grouping.h"
#include "engine/compile/fuse/region_kernel.h"
#include "engine/plan/device_traits.h"
#include "engine/plan/plan.h"

namespace caldera {

/// Compiles a program that a step runs.
using PartCompiler = std::function<std::shared_ptr<const Plan>(const Program&)>;

class Emitter {
 public:
  Emitter(const Placement& placement, const DeviceTraits& traits, PartCompiler compile_part);

  Plan run(const std::vector<Group>& groups);

 private:
  /// An operand in memory with its view.
  struct Placed {
    std::int32_t buffer;
    View view;
  };

  // ---- memory ----
  std::int32_t add_buffer(BufferRole role, DType dtype, std::int64_t elements);
  std::int32_t add_buffer(BufferRole role, const Program::Node& n) {
    return add_buffer(role, n.dtype, n.shape.numel());
  }
  /// The buffer that a root's kernel writes, dense: an output of the plan, or one of the arena.
  std::int32_t destination(std::uint32_t root);
  /// The buffer that holds a root.
  std::int32_t memory(std::uint32_t root);
  /// Neither a number nor a coordinate nor a function of such.
  bool has_memory(std::uint32_t root) const {
    return !placement_.is_free(root) && !placement_.is_generated(root);
  }
  /// Has memory that holds elements of the type that the source is seen with (see Placement::find_views).
  bool has_own_memory(const Source& source) const {
    return has_memory(source.root) && node(source.root).dtype == node(source.shape_of).dtype;
  }
  /// The type of what placed() gives.
  DType type_in_memory(const Source& source) const {
    return node(has_memory(source.root) ? source.root : source.shape_of).dtype;
  }
  /// Returns the operand of `source`. Coordinates, which have no memory, are written out in the requested
  /// shape. Memory of 16-bit types may stand for f32.
  Placed placed(const Source& source);
  Placed written_out(const Source& source) { return written_out(source, node(source.shape_of).dtype); }
  Placed written_out(const Source& source, DType type);

  // ---- regions (emit_region.cpp) ----
  void region(const Group& group);
  /// Returns where root `i` of the group is written: over the group's space.
  Placed result(const Group& group, std::uint32_t i);
  /// Writes `source` with extents `shape` to a buffer, through a view of it.
  void copy(const Source& source, const Shape& shape, std::int32_t buffer, const View& to);
  void copy_root(std::uint32_t i);
  /// One dense buffer to another, of a type of the same compute_type().
  void convert(std::int32_t from, std::int32_t to, const Shape& shape);
  void fill(DType dtype, std::uint64_t bits, const Shape& shape, std::int32_t buffer);
  void kernel_step(RegionKernel built, const Shape& space, const std::vector<Placed>& results,
                   std::int64_t reduced);
  void push_in_stages(Step step);
  std::shared_ptr<const Kernel> reload_kernel(const Kernel& of);
  std::shared_ptr<const Kernel> stored_as(DType type, const Kernel& of);
  std::shared_ptr<const Kernel> share(Kernel kernel);
  void add_operands(Step& step, const RegionKernel& built);

  // ---- contractions (emit_product.cpp) ----
  void product(const Group& group);
  DType factor_type(const Source& source) const;
  Placed factor(const Source& source);
  void product_of_copies(std::uint32_t i);
  void push_product(Step step);
  void split_k(Step step, std::int64_t parts);

  // ---- attention (emit_attention.cpp) ----
  void attention(std::uint32_t i);
  void add_matrix(Step& step, const Placed& p, int rows, int columns);
  StoredKeys add_attention_inputs(Step& step, std::uint32_t i, bool forward);
  std::shared_ptr<const Kernel> add_attention_kernel(Step& step, RegionKernel built);
  /// Says where attention finds keys or values that a root would have gathered or dequantised.
  struct StoredRows {
    Source table;
    std::optional<Source> rows;  // that say which row of the table is a key's
    bool blocks = false;
    std::int64_t row_count = 0, columns = 0;        // of what would have been made, in one matrix
    std::int64_t table_rows = 0, table_stride = 0;  // of the table
    View view;      // of the table's memory, without its rows if `rows` says them
    View row_view;  // of `rows`, in their order
  };
  std::optional<StoredRows> stored_rows(const Source& source, int keys, int width) const;
  std::optional<StoredRows> stored_keys(std::uint32_t attention, std::size_t operand) const;
  bool may_read_stored(std::uint32_t attention) const;
  void find_stored_keys();
  StoredKeys add_stored_keys(Step& step, std::uint32_t i);
  void add_attention_results(Step& step, std::uint32_t i, AttentionPass pass);

  // ---- matrix routines (emit_linalg.cpp) ----
  Placed matrices(const Source& source, Shape& extents);
  void linalg(std::uint32_t i);

  // ---- sorts (emit_sort.cpp) ----
  void sort(std::uint32_t i);

  // ---- convolutions (emit_convolution.cpp) ----
  void convolution(std::uint32_t i);

  // ---- loops and branches (emit_control.cpp) ----
  void control(std::uint32_t i);

  // ---- quantised matrices (emit_quantized.cpp) ----
  Placed laid_out(const Source& source, const Shape& extents, bool dense);
  void quantized(std::uint32_t i);

  // ---- parts that numbers move (emit_moved.cpp) ----
  /// A name for `buffer` moved by `terms`, as a buffer, until resolve_moved() replaces it.
  std::int32_t add_moved(std::int32_t buffer, std::vector<Position::Term> terms);
  void dynamic_slice(std::uint32_t i);
  void dynamic_update(std::uint32_t i);
  void pad(std::uint32_t i);
  void resolve_moved();

  // ---- parts of tensors (emit_indexed.cpp) ----
  Placed three_dimensional(const Source& source, int axis, Shape& extents);
  Placed one_dimensional(const Source& source);
  struct Indices {
    Operand operand;
    std::int64_t count;  // along the axis
  };
  Indices indices(std::uint32_t i, int axis);
  void gather(std::uint32_t i);
  void scatter(std::uint32_t i);
  void concatenate(std::uint32_t i);

  // ---- what is in memory of its own ----
  void find_stored_values();

  void push(Step step);
  const Program::Node& node(std::uint32_t i) const { return placement_.node(i); }

  const Placement& placement_;
  const DeviceTraits& traits_;
  PartCompiler compile_part_;
  Plan plan_;
  std::vector<std::int32_t> buffer_;  // of each root, -1 while it has none
  std::vector<bool> in_place_;        // roots that were written straight into their concatenation
  std::vector<bool> absorbed_;        // roots that attention reads as they are stored, see StoredKeys
  std::map<std::pair<std::uint32_t, std::int64_t>, std::uint32_t>
      other_;                           // further results, by root and number
  std::vector<std::uint32_t> origins_;  // of the group being emitted
  std::string label_;
  std::unordered_map<Hash128, std::shared_ptr<const Kernel>> kernels_;
  struct Moved {
    std::int32_t name;
    std::int32_t buffer;
    std::vector<Position::Term> terms;
  };
  std::vector<Moved> moved_;  // by ascending name
};

/// Moves the dimensions in `inner` (a bit mask) inwards, drops extents of 1 and merges neighbours that every
/// operand walks as one.
void order_and_collapse(Step& step, std::int64_t inner);

}  // namespace caldera
