#include "engine/graph/transfer.h"

#include <span>

#include "engine/graph/jvp.h"
#include "engine/graph/vjp.h"

namespace caldera {
namespace {

void to_vjp(VjpContext& c) { c.grads[0] = to(c.cotangent, c.inputs[0].device()); }

void to_jvp(JvpContext& c) { c.tangent = to(c.tangents[0], c.output.device()); }

const OpDef kTo{.name = "to", .kind = OpClass::transfer, .vjp = to_vjp, .jvp = to_jvp};

}  // namespace

LazyTensor to(const LazyTensor& x, Device device) {
  Node* const from = &x.node();
  if (from->device() == device || from->is_scalar_leaf()) return x;
  return LazyTensor(Node::make(kTo, x.shape(), x.dtype(), device, {&from, 1}));
}

}  // namespace caldera
