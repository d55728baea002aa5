// Calls of the table's operations with the operands that a sample describes.
#pragma once

#include <string>
#include <vector>

#include "tests/catalogue/table/operation.h"
#include "tests/support/layouts.h"
#include "tests/support/op_setting.h"

namespace caldera::testing {

/// The values of every operand of a call in `type`, in row-major order.
inline std::vector<Host> operand_values(const catalogue::Sample& sample, DType type) {
  std::vector<Host> out;
  for (std::size_t i = 0; i < sample.operands.size(); ++i) {
    out.emplace_back(sample.operands[i].shape, catalogue::values_of(sample.operands[i], i, type));
  }
  return out;
}

/// An operand that holds `values` and whose elements lie in a leaf as `layout` says. A broadcast operand
/// repeats the first entry of axis 0, so its values are other ones.
inline LazyTensor laid_out(const Host& values, DType type, Layout layout, Device device) {
  const Shape& shape = values.shape;
  if (layout == Layout::plain || shape.rank() == 0) return upload(values, type, device);
  Host base(base_shape(shape, layout));
  // What the view does not show is filled with a value that would be noticed.
  std::fill(base.values.begin(), base.values.end(), type == DType::boolean ? 1 : 111);
  for (std::int64_t i = 0; i < shape.numel(); ++i) {
    const Index at = unravel(i, shape);
    Index behind = at;
    for (int axis = 0; axis < shape.rank(); ++axis) {
      const auto a = static_cast<std::size_t>(axis);
      const auto back = static_cast<std::size_t>(shape.rank() - 1 - axis);
      if (layout == Layout::permuted) behind[back] = at[a];
      if (layout == Layout::sliced) behind[a] = 2 * at[a] + 1;
      if (layout == Layout::reversed) behind[a] = shape[axis] - 1 - at[a];
      if (layout == Layout::broadcast && axis == 0) behind[a] = 0;
    }
    base[behind] = values[at];
  }
  return view_of(upload(base, type, device), shape, layout);
}

inline std::vector<LazyTensor> operands_of(const catalogue::Sample& sample, DType type, Layout layout,
                                           Device device) {
  std::vector<LazyTensor> out;
  const std::vector<Host> values = operand_values(sample, type);
  for (std::size_t i = 0; i < values.size(); ++i) {
    out.push_back(laid_out(values[i], sample.operands[i].dtype.value_or(type), layout, device));
  }
  return out;
}

/// Every element as a double. The host widens them: not every device has f64.
inline std::vector<double> numbers(const LazyTensor& x) {
  return to(x, Device::cpu()).astype(DType::f64).to_vector<double>();
}

}  // namespace caldera::testing
