// Gather and scatter steps made ready: rows picked by an index.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/device/cpu/regions/region_step.h"
#include "engine/plan/plan.h"

namespace caldera::cpu {

class PreparedIndexed {
 public:
  /// `index_type`: of the index operand, i32 or i64. `scatter`: how a scatter combines; nothing for a gather.
  PreparedIndexed(const Step& step, const IndexedAxis& axis, std::optional<Scatter> scatter,
                  DType index_type);
  void run(const RunContext& context) const;

 private:
  /// Points that differ in the innermost dimension alone.
  template <class T>
  struct Line {
    const T* from = nullptr;
    T* to = nullptr;
    const std::byte* indices = nullptr;
    std::int64_t element[3] = {};  // of the first point
    std::int64_t steps[3] = {};
    std::int64_t points = 1;
    std::int64_t repeats = 1;  // lines one after the other, of rows of one element alone
    std::int64_t repeat_steps[3] = {};
  };
  template <class Index, class Row>
  void run_line(const Row& row, const Line<typename Row::Element>& line, std::int64_t width) const;
  template <class Row>
  void run_part(const RunContext& context, const Row& row, std::int64_t outer_begin, std::int64_t outer_end,
                std::int64_t row_begin, std::int64_t row_end) const;
  template <class T>
  void run_typed(const RunContext& context) const;

  std::optional<Scatter> scatter_;  // nothing: a gather
  DType type_ = DType::f32;
  DType index_type_ = DType::i32;
  std::int64_t axis_extent_ = 0;
  std::int64_t axis_stride_ = 0;
  std::int32_t buffers_[3] = {-1, -1, -1};  // x or u, indices, out
  std::int64_t offsets_[3] = {};
  std::vector<std::int64_t> dims_;  // all but the row; along the leading `free_dims_` no point meets another
  std::size_t free_dims_ = 0;
  std::vector<std::int64_t> strides_[3];
  std::int64_t row_ = 1;  // innermost run that one index moves
  std::int64_t row_strides_[3] = {};
  std::int64_t points_ = 0;
};

}  // namespace caldera::cpu
