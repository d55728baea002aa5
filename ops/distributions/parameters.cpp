#include "ops/distributions/parameters.h"

#include <fmt/format.h>

#include "engine/base/error.h"
#include "ops/core/arithmetic.h"
#include "ops/core/creation.h"

namespace caldera::ops {

void check_floating(std::string_view distribution, std::string_view parameter, const LazyTensor& x) {
  if (!x.defined())
    throw ValueError(fmt::format("{}: {} is empty; assign a tensor to it", distribution, parameter));
  if (!is_floating(x.dtype()))
    throw DTypeError(
        fmt::format("{}: {} is {}; pass a floating tensor", distribution, parameter, name(x.dtype())));
}

void share_shape(std::string_view distribution, LazyTensor& a, LazyTensor& b) {
  try {
    const LazyTensor both = a + b;  // its shape and type; it is computed by nobody
    const auto spread = [&](const LazyTensor& x) {
      const LazyTensor cast = x.dtype() == both.dtype() ? x : x.astype(both.dtype());
      return x.shape() == both.shape() ? cast : cast.broadcast_to(both.shape());
    };
    a = spread(a);
    b = spread(b);
  } catch (const ShapeError& error) {
    throw ShapeError(fmt::format("{}: its parameters do not broadcast: {}", distribution, error.what()));
  }
}

}  // namespace caldera::ops
