#include "engine/autodiff/trace_scope.h"

#include "engine/graph/vjp.h"
#include "ops/core/node_builder.h"

namespace caldera {
namespace {

const OpDef kTraced{
    .name = "traced", .kind = OpClass::identity, .vjp = ops::pass_cotangent, .jvp = ops::linear_jvp};

}  // namespace

std::vector<LazyTensor> TraceScope::traced(std::span<const LazyTensor> arguments) const {
  std::vector<LazyTensor> traced;
  traced.reserve(arguments.size());
  for (const LazyTensor& argument : arguments) {
    traced.push_back(ops::make(kTraced, argument.shape(), argument.dtype(), {argument}));
    traced.back().node().set_traced();
  }
  return traced;
}

}  // namespace caldera
