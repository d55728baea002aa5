#include "engine/control/carry.h"

#include <fmt/core.h>

#include "engine/autodiff/argument_checks.h"
#include "engine/base/error.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/node_builder.h"

namespace caldera {

Device device_among(std::span<const LazyTensor> tensors, std::span<const LazyTensor> others) {
  for (const auto list : {tensors, others}) {
    for (const LazyTensor& x : list) {
      if (!ops::is_scalar_leaf(x)) return x.device();
    }
  }
  return default_device();
}

std::vector<LazyTensor> first_carries(std::span<const LazyTensor> init, std::span<const LazyTensor> over,
                                      std::string_view title) {
  check_defined(init, title, "carry");
  check_defined(over, title, "tensor to go through");
  if (init.empty())
    throw ValueError(fmt::format("{}: there is no carry; give at least one to begin with", title));
  const Device device = device_among(init, over);
  std::vector<LazyTensor> carries;
  for (const LazyTensor& x : init) carries.push_back(ops::anchored(x, device));
  return carries;
}

std::vector<LazyTensor> carries_after(std::vector<LazyTensor> given, std::span<const LazyTensor> before,
                                      std::string_view title) {
  if (given.size() != before.size()) {
    throw ValueError(fmt::format("{}: a turn gave {} carries and got {}; it gives as many as it gets", title,
                                 given.size(), before.size()));
  }
  check_defined(given, title, "carry of a turn");
  for (std::size_t i = 0; i < given.size(); ++i) {
    LazyTensor& x = given[i];
    const LazyTensor& was = before[i];
    if (ops::is_scalar_leaf(x))
      x = broadcast_to(astype(ops::anchored(x, was.device()), was.dtype()), was.shape());
    if (was.shape() != x.shape()) {
      throw ShapeError(
          fmt::format("{}: carry {} has shape {} before a turn and {} after it; a carry keeps its shape",
                      title, i, was.shape().to_string(), x.shape().to_string()));
    }
    if (was.dtype() != x.dtype()) {
      throw DTypeError(fmt::format(
          "{}: carry {} is {} before a turn and {} after it; a carry keeps its type: convert with astype()",
          title, i, name(was.dtype()), name(x.dtype())));
    }
  }
  return given;
}

}  // namespace caldera
