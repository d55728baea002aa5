#include "ops/sort/row_order.h"

#include <array>

#include "ops/core/node_builder.h"
#include "ops/core/slicing.h"
#include "ops/sort/sorting_network.h"

namespace caldera::ops {
namespace {

const OpDef kSort{.name = "sort", .kind = OpClass::sort, .zero_gradient = true};

}  // namespace

LazyTensor order_of_rows(const LazyTensor& x, bool descending, std::int64_t first, std::int64_t count) {
  if (x.device().kind != DeviceKind::cpu) {
    const LazyTensor places = order_by_network(x, descending, first + count);
    return first == 0 ? places : slice(places, 1, first, first + count);
  }
  const std::array<std::int64_t, 2> attributes{first, descending ? 1 : 0};
  return make(kSort, Shape{x.shape(0), count}, DType::i32, {x}, attributes);
}

}  // namespace caldera::ops
