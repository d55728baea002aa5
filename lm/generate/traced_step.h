// Steps of a model that are traced once (compiled()), over buffers that each step gives to the next one.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "engine/jit/compiled.h"
#include "ops/core/creation.h"

namespace caldera {

/// Compiles a function of `front` arguments and then a cache's buffers, that returns new buffers and then a
/// result. The buffers' memory is given to the results.
inline VectorFunction traced_step(VectorFunction function, std::size_t front, std::size_t buffers) {
  CompiledOptions options;
  for (std::size_t i = 0; i < buffers; ++i) options.donate.push_back(front + i);
  return compiled(std::move(function), std::move(options));
}

/// Returns tensors that do not remember what they came from: nobody differentiates a step.
inline std::vector<LazyTensor> constants(std::vector<LazyTensor> tensors) {
  for (LazyTensor& tensor : tensors) tensor = stop_gradient(tensor);
  return tensors;
}

/// Calls it with the cache's buffers behind `arguments`. After an error the cache has its buffers again.
template <class Cache>
LazyTensor run_traced_step(const VectorFunction& step, std::vector<LazyTensor> arguments, Cache& cache) {
  const std::size_t front = arguments.size();
  for (LazyTensor& buffer : cache.give_buffers()) arguments.push_back(std::move(buffer));
  std::vector<LazyTensor> results;
  try {
    results = step(arguments);
  } catch (...) {
    cache.set_buffers(std::span(arguments).subspan(front));
    throw;
  }
  cache.set_buffers(std::span(results).first(results.size() - 1));
  return std::move(results.back());
}

}  // namespace caldera
