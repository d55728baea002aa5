#include "engine/jit/compiled.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/autodiff/argument_checks.h"
#include "engine/graph/tracing/tracing.h"
#include "engine/jit/replay.h"
#include "engine/jit/trace_cache.h"
#include "engine/runtime/profile_hooks.h"

namespace caldera {
namespace {

class CompiledFunction {
 public:
  CompiledFunction(VectorFunction function, CompiledOptions options)
      : function_(std::move(function)), options_(std::move(options)), traces_(options_.most_traces) {}

  std::vector<LazyTensor> operator()(std::span<const LazyTensor> arguments) {
    check_defined(arguments, "compiled", "argument");
    if (is_inside(arguments)) return function_(arguments);
    const ProfileSpan span("compiled");
    while (true) {
      evaluate(arguments);
      std::shared_ptr<const Trace> trace = traces_.find(arguments);
      if (trace == nullptr) {
        check_donated(arguments.size());
        trace = record_trace(function_, arguments);
        if (trace == nullptr) return function_(arguments);
        traces_.insert(arguments, trace);
      }
      std::shared_ptr<OpenDevice> device;
      if (!trace->outputs.empty()) {
        device = open_device(trace->device);
        if (device->opening != trace->opening) {  // captured values may be in memory of the former
          traces_.drop(trace);
          continue;
        }
      }
      if (!holds_numbers(*trace, arguments)) {
        std::vector<LazyTensor> results = function_(arguments);
        eval(results);
        return results;
      }
      if (auto results = replay(*trace, arguments, donated(arguments.size()), device))
        return std::move(*results);
      evaluate(captured_by(*trace));
    }
  }

 private:
  /// Whether the call is part of what another transform traces.
  static bool is_inside(std::span<const LazyTensor> arguments) {
    return Tracing::depth() > 0 && std::any_of(arguments.begin(), arguments.end(),
                                               [](const LazyTensor& x) { return x.node().is_traced(); });
  }

  static void evaluate(std::span<const LazyTensor> arguments) {
    const auto is_lazy = [](const LazyTensor& x) {
      return !x.node().has_value() && !x.node().is_scalar_leaf();
    };
    if (std::none_of(arguments.begin(), arguments.end(), is_lazy)) return;
    std::vector<LazyTensor> lazy;
    std::copy_if(arguments.begin(), arguments.end(), std::back_inserter(lazy), is_lazy);
    eval(lazy);
  }

  static std::vector<LazyTensor> captured_by(const Trace& trace) {
    std::vector<LazyTensor> captured;
    for (const Trace::Input& input : trace.inputs) {
      if (input.captured == nullptr) continue;
      input.captured->add_ref();
      captured.emplace_back(NodePtr(input.captured));
    }
    return captured;
  }

  void check_donated(std::size_t count) const {
    for (const std::size_t i : options_.donate) {
      if (i < count) continue;
      throw ValueError(
          fmt::format("compiled: donate names argument {}, and there are {}, counted from 0", i, count));
    }
  }
  /// Which arguments may be given away; empty: none.
  std::vector<bool> donated(std::size_t count) const {
    std::vector<bool> all;
    if (options_.donate.empty()) return all;
    all.resize(count, false);
    for (const std::size_t i : options_.donate) all[i] = true;
    return all;
  }

  VectorFunction function_;
  CompiledOptions options_;
  TraceCache traces_;
};

}  // namespace

VectorFunction compiled(VectorFunction function, CompiledOptions options) {
  check_callable(function, "compiled");
  return [call = std::make_shared<CompiledFunction>(std::move(function), std::move(options))](
             std::span<const LazyTensor> arguments) { return (*call)(arguments); };
}

TensorFunction compiled(TensorFunction function, CompiledOptions options) {
  return [all = compiled(as_vector_function(std::move(function)), std::move(options))](
             std::span<const LazyTensor> arguments) { return all(arguments)[0]; };
}

UnaryFunction compiled(UnaryFunction function, CompiledOptions options) {
  return [all = compiled(as_tensor_function(std::move(function)), std::move(options))](const LazyTensor& x) {
    return all({&x, 1});
  };
}

}  // namespace caldera
