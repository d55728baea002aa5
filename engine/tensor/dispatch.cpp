#include "engine/tensor/dispatch.h"

#include <fmt/core.h>

#include "engine/base/error.h"

namespace caldera::detail {

void refuse_dispatch(DType type) {
  const auto number = static_cast<int>(type);
  if (number >= kDTypeCount)
    throw DTypeError(fmt::format("{} is no dtype; use one of the enumerators of DType", number));
  throw DTypeError(fmt::format("no code here is for {}; convert the tensor to another dtype", name(type)));
}

}  // namespace caldera::detail
