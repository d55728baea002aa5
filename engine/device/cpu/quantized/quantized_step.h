// A step over quantised matrices: rows of them as floats, and products that dequantise them inside.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/device/cpu/quantized/quantized_ops.h"
#include "engine/device/cpu/quantized/rounded_rows.h"
#include "engine/device/cpu/tiles/tile_layout.h"
#include "engine/plan/plan.h"

namespace caldera::cpu {

/// Products of few rows multiply weights as they are decoded, and move no byte but theirs. Those of many
/// decode panels of the matrix, which stay in the cache until OpenBLAS has multiplied them. Where x may be
/// rounded, both multiply integers.
class PreparedQuantized {
 public:
  PreparedQuantized(const Plan& plan, const Step& step, const QuantizedStep& quantized);
  void run(const RunContext& context) const;

 private:
  struct Place {
    std::int32_t buffer = -1;
    std::int64_t offset = 0;  // elements
    Dims strides;
    DType type = DType::f32;
  };
  /// The rows of x, or of the result, that one matrix is multiplied with.
  struct Run {
    std::int64_t matrix, first, count;
  };

  const std::byte* bytes(const RunContext& context, const Place& place) const;
  /// Copies a row that is interleaved, into one of kPanelRows slots.
  QuantizedRow row_of(const RunContext& context, std::int64_t row, std::int64_t slot = 0) const;
  const std::byte* interleaved_rows(const RunContext& context, std::int64_t first) const;
  void pack_panel(const RunContext& context, std::int64_t first, std::int64_t count, std::byte* panel) const;
  const float* numbers(const RunContext& context, std::size_t part, std::int64_t row,
                       std::int64_t slot) const;
  std::vector<Run> runs(const RunContext& context) const;
  void take(const RunContext& context) const;
  void multiply(const RunContext& context, const Run& run) const;
  void multiply_halves(const RunContext& context, const Run& run, const float* x, std::int64_t x_row,
                       float* out) const;
  void multiply_few(const RunContext& context, const Run& run, const float* x, std::int64_t x_row,
                    float* out) const;
  void multiply_panels(const RunContext& context, const Run& run, const float* x, std::int64_t x_row,
                       float* out) const;
  void multiply_integers(const RunContext& context, const Run& run, const float* x, std::int64_t x_row,
                         float* out) const;
  void multiply_tiles(const RunContext& context, const Run& run, const float* x, std::int64_t x_row,
                      float* out) const;
  void multiply_across(const RunContext& context, const Run& run, const float* x, std::int64_t x_row,
                       float* out) const;

  QuantizedNode what_;
  std::int64_t m_ = 0;
  std::int64_t out_row_ = 0;  // elements from a row of the result to the next; along it they are neighbours
  Place x_, which_, out_;
  std::vector<Place> parts_;
  std::vector<QuantizedPart> forms_;
};

}  // namespace caldera::cpu
