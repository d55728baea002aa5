// Mapping: a function called on stand-ins for one example, whose graph is rewritten for all of them. Internal
// to vmap and to rules of calls that map the functions that they run.
#pragma once

#include <span>
#include <vector>

#include "engine/autodiff/batching.h"
#include "engine/autodiff/function.h"
#include "engine/graph/call_rule.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The arguments of one call, and what stands for them inside of the function.
class Mapping {
 public:
  /// Takes arguments of which at least one is mapped; mapped axes have one length.
  explicit Mapping(std::vector<Batched> arguments);

  /// Calls the function on the stand-ins. Throws ValueError for an empty result.
  std::vector<LazyTensor> call(const VectorFunction& function) const;

  /// Returns what the function gave, for all examples.
  std::vector<Batched> rewrite(std::span<const LazyTensor> results) const;

  const Examples& examples() const { return examples_; }

 private:
  std::vector<LazyTensor> inner_;
  std::vector<LazyTensor> mapped_;  // what each placeholder stands for
  Examples examples_;
};

/// The results of `function` for all examples. What is mapped of the arguments, if anything, has one length.
std::vector<Batched> mapped_over(const VectorFunction& function, std::span<const Batched> arguments);

}  // namespace caldera
