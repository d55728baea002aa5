#include "engine/typed/typed_tensor.h"

#include <fmt/format.h>

#include <string>

namespace caldera::detail {
namespace {

std::string printed(const StaticShape& shape) {
  std::string text = "(";
  for (int i = 0; i < shape.rank; ++i) {
    if (i > 0) text += ", ";
    const Extent e = shape[i];
    text += e.is_static() ? std::to_string(e.size) : e.is_named() ? std::string(e.label.data()) : "any";
  }
  return text + ")";
}

}  // namespace

void check_typed(const LazyTensor& x, DType type, const StaticShape& shape) {
  if (!x.defined()) throw ValueError("typed: the tensor is empty; assign one to it before");
  if (x.dtype() != type)
    throw DTypeError(fmt::format("typed: the tensor is {}, the type says {}; convert it with astype()",
                                 name(x.dtype()), name(type)));
  if (!shape.known) return;
  bool fits = x.rank() == shape.rank;
  for (int i = 0; fits && i < shape.rank; ++i) {
    fits = !shape[i].is_static() || shape[i].size == x.shape(i);
    for (int k = 0; fits && k < i; ++k)
      fits = !shape[i].is_named() || shape[k] != shape[i] || x.shape(k) == x.shape(i);
  }
  if (!fits)
    throw ShapeError(fmt::format("typed: the tensor's shape is {}, the type says {}", x.shape().to_string(),
                                 printed(shape)));
}

}  // namespace caldera::detail
