#include "engine/compile/emit/row_view.h"

namespace caldera {

std::optional<RowView> RowView::of(const View& view, const Shape& extents, std::int64_t rows,
                                   std::int64_t columns) {
  if (rows < 1 || columns < 1) return std::nullopt;
  const std::int64_t matrix = rows * columns;
  RowView out;
  out.first = {view.offset / matrix, view.offset / columns % rows, view.offset % columns};
  RowPlace last = out.first;
  for (int d = 0; d < extents.rank(); ++d) {
    const std::int64_t stride = extents[d] > 1 ? view.strides[d] : 0;
    if (stride < 0) return std::nullopt;
    RowPlace& step = out.along.emplace_back();
    if (stride % matrix == 0)
      step.matrix = stride / matrix;
    else if (stride % columns == 0)
      step.row = stride / columns;
    else
      step.column = stride;
    last.row += (extents[d] - 1) * step.row;
    last.column += (extents[d] - 1) * step.column;
  }
  if (last.row >= rows || last.column >= columns) return std::nullopt;
  return out;
}

}  // namespace caldera
