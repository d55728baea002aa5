#include "engine/autodiff/barrier.h"

#include <vector>

#include "engine/graph/jvp.h"
#include "engine/graph/vjp.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"

namespace caldera {
namespace {

void barrier_jvp(JvpContext& c) {
  c.tangent = c.tangents[0].defined() ? c.tangents[0] : zeros_like(c.inputs[0]);
}
// Differentiation knows that only the first input of a barrier has to do with its value.
const OpDef kBarrier{
    .name = "barrier", .kind = OpClass::barrier, .vjp = ops::pass_cotangent, .jvp = barrier_jvp};

}  // namespace

LazyTensor behind_barrier(const LazyTensor& x, std::span<const LazyTensor> after) {
  std::vector<Node*> inputs{&x.node()};
  for (const LazyTensor& y : after) {
    if (y.defined() && y.device() == x.device() && !y.node().is_scalar_leaf()) inputs.push_back(&y.node());
  }
  return LazyTensor(Node::make(kBarrier, x.shape(), x.dtype(), x.device(), inputs));
}

}  // namespace caldera
