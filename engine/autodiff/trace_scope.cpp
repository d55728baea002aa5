#include "engine/autodiff/trace_scope.h"

#include <memory>

#include "engine/graph/trace.h"
#include "engine/graph/vjp.h"
#include "ops/core/node_builder.h"

namespace caldera {
namespace {

const OpDef kTraced{
    .name = "traced", .kind = OpClass::identity, .vjp = ops::pass_cotangent, .jvp = ops::linear_jvp};

thread_local std::shared_ptr<Trace> current_trace;

}  // namespace

TraceScope::TraceScope() : outermost_(!current_trace) {
  if (outermost_) current_trace = std::make_shared<Trace>();
}

TraceScope::~TraceScope() {
  if (!outermost_) return;
  end_trace(*current_trace);
  current_trace.reset();
}

std::vector<LazyTensor> TraceScope::traced(std::span<const LazyTensor> arguments) const {
  std::vector<LazyTensor> traced;
  traced.reserve(arguments.size());
  for (const LazyTensor& argument : arguments) {
    traced.push_back(ops::make(kTraced, argument.shape(), argument.dtype(), {argument}));
    traced.back().node().set_trace(current_trace);
  }
  return traced;
}

}  // namespace caldera
