// WindowRuns: where the elements of an image lie that windows see. Private to engine/device/cpu/.
#pragma once

#include <cstdint>
#include <vector>

namespace caldera::cpu {

/// One axis of windows: output o sees input o * stride + offset of a tap.
struct WindowAxis {
  std::int64_t inputs = 1;
  std::int64_t outputs = 1;
  std::int64_t stride = 1;
};

/// Neighbours among the outputs that see elements of one row of an image: `length` of them, from number
/// `at` of a range on, see source[from], source[from + stride] ...
struct WindowRun {
  std::int64_t at = 0;
  std::int64_t length = 0;
  std::int64_t from = 0;
};

/// Lists, for one tap of a window, what outputs `begin` to `end` see; outputs are counted over all images,
/// rows and columns, and what sees nothing of an image is left out. `image` elements are between images.
inline void append_runs(std::vector<WindowRun>& runs, std::int64_t begin, std::int64_t end,
                        const WindowAxis& rows, const WindowAxis& columns, std::int64_t row_offset,
                        std::int64_t column_offset, std::int64_t image) {
  const std::int64_t area = rows.outputs * columns.outputs;
  // Columns [low, high) of outputs see columns of the image.
  const auto up = [](std::int64_t a, std::int64_t b) { return a <= 0 ? 0 : (a + b - 1) / b; };
  const std::int64_t low = up(-column_offset, columns.stride),
                     high = up(columns.inputs - column_offset, columns.stride);
  for (std::int64_t at = begin; at < end;) {
    const std::int64_t n = at / area, row = at % area / columns.outputs, column = at % columns.outputs;
    const std::int64_t count = end - at < columns.outputs - column ? end - at : columns.outputs - column;
    const std::int64_t source_row = row * rows.stride + row_offset;
    if (source_row >= 0 && source_row < rows.inputs) {
      const std::int64_t first = column > low ? column : low,
                         last = column + count < high ? column + count : high;
      if (first < last)
        runs.push_back({at - begin + first - column, last - first,
                        n * image + source_row * columns.inputs + first * columns.stride + column_offset});
    }
    at += count;
  }
}

}  // namespace caldera::cpu
