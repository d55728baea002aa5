#include "tests/support/plans/dispatch_depth.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

namespace caldera::testing {
namespace {

/// The elements of its buffer that an operand touches: one extent and stride for each dimension it walks.
struct Walk {
  std::int64_t first = 0;
  std::vector<std::pair<std::int64_t, std::int64_t>> dims;  // extent, stride
  bool is_empty = false;

  template <class Visit>
  void each(Visit visit) const {
    if (!is_empty) each_from(first, 0, visit);
  }

 private:
  template <class Visit>
  void each_from(std::int64_t element, std::size_t dim, Visit visit) const {
    if (dim == dims.size()) return visit(element);
    for (std::int64_t i = 0; i < dims[dim].first; ++i)
      each_from(element + i * dims[dim].second, dim + 1, visit);
  }
};

Walk walk_of(const Step& step, std::size_t k) {
  const Operand& operand = step.operands[k];
  Walk walk;
  walk.first = operand.offset;
  const Shape extents = step.operand_dims(k);
  for (int d = 0; d < extents.rank(); ++d) {
    if (operand.strides[d] == 0) continue;
    walk.dims.emplace_back(extents[d], operand.strides[d]);
    walk.is_empty = walk.is_empty || extents[d] == 0;
  }
  const auto* gather = step.if_a<GatherStep>();
  const auto* scatter = step.if_a<ScatterStep>();
  const IndexedAxis* axis = gather != nullptr && k == 0                           ? &gather->axis
                            : scatter != nullptr && k + 1 == step.operands.size() ? &scatter->axis
                                                                                  : nullptr;
  if (axis != nullptr) {  // any element along the axis
    walk.dims.emplace_back(axis->extent, axis->stride);
    walk.is_empty = walk.is_empty || axis->extent == 0;
  }
  // Widest stride first, so that elements are met in order.
  std::sort(walk.dims.begin(), walk.dims.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  return walk;
}

/// If the walk is a dense block from element 0, its length; else -1.
std::int64_t whole_block(const Walk& walk) {
  if (walk.first != 0 || walk.is_empty) return -1;
  std::int64_t expected = 1;
  for (auto dim = walk.dims.rbegin(); dim != walk.dims.rend(); ++dim) {
    if (dim->first == 1) continue;
    if (dim->second != expected) return -1;
    expected *= dim->first;
  }
  return expected;
}

struct Cell {
  int written = 0;  // depth of the dispatch that wrote it last
  int read = 0;     // greatest depth of those that have read it since
};

/// A buffer that everybody touches as one and the same block is one cell; others have one for each element.
class Cells {
 public:
  void note(const Walk& walk) {
    const std::int64_t block = whole_block(walk);
    if (block < 0 || (block_ >= 0 && block != block_)) is_one_ = false;
    block_ = block;
  }
  template <class Visit>
  void each(const Walk& walk, Visit visit) {
    if (is_one_) {
      if (!walk.is_empty) visit(cells_[0]);
      return;
    }
    walk.each([&](std::int64_t element) { visit(cells_[element]); });
  }

 private:
  std::int64_t block_ = -1;
  bool is_one_ = true;
  std::map<std::int64_t, Cell> cells_;
};

int depth(const Plan& plan, bool overwriting_waits) {
  std::vector<Cells> buffers(plan.buffers.size());
  const auto each_operand = [&](const Step& step, auto visit) {
    const std::size_t outputs = step.operands.size() - static_cast<std::size_t>(step.output_count());
    for (std::size_t k = 0; k < step.operands.size(); ++k) {
      const std::int32_t b = step.operands[k].buffer;
      if (b < 0 || plan.buffers[static_cast<std::size_t>(b)].role == BufferRole::input) continue;
      const bool writes = k >= outputs;
      const bool reads = !writes || step.is<ScatterStep>();
      visit(buffers[static_cast<std::size_t>(b)], walk_of(step, k), reads, writes);
    }
  };
  for (const Step& step : plan.steps)
    each_operand(step, [](Cells& cells, const Walk& walk, bool, bool) { cells.note(walk); });

  int deepest = 0;
  for (std::size_t first = 0; first < plan.steps.size();) {
    std::size_t end = first + 1;
    while (end < plan.steps.size() && plan.steps[end].joined) ++end;
    int waits_for = 0;
    for (std::size_t s = first; s < end; ++s) {
      each_operand(plan.steps[s], [&](Cells& cells, const Walk& walk, bool reads, bool writes) {
        cells.each(walk, [&](const Cell& cell) {
          if (reads) waits_for = std::max(waits_for, cell.written);
          if (writes && overwriting_waits) waits_for = std::max({waits_for, cell.written, cell.read});
        });
      });
    }
    const int own = waits_for + 1;
    deepest = std::max(deepest, own);
    for (const bool writing : {false, true}) {  // reads of a dispatch come before its writes
      for (std::size_t s = first; s < end; ++s) {
        each_operand(plan.steps[s], [&](Cells& cells, const Walk& walk, bool reads, bool writes) {
          cells.each(walk, [&](Cell& cell) {
            if (writing && writes) cell = {own, 0};
            if (!writing && reads) cell.read = std::max(cell.read, own);
          });
        });
      }
    }
    first = end;
  }
  return deepest;
}

}  // namespace

int depth_by_reads(const Plan& plan) { return depth(plan, false); }
int depth_by_elements(const Plan& plan) { return depth(plan, true); }

}  // namespace caldera::testing
