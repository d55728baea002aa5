// OuterStep: brings together ranks that train on their own for some steps. Private to training/trainer/.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/distributed/distributed.h"
#include "training/optim/optimizer.h"
#include "training/trainer/sharing_options.h"

namespace caldera::detail {

/// DiLoCo (A. Douillard et al., "DiLoCo: Distributed Low-Communication Training of Language Models", 2023):
/// with p the parameters after the outer step before and d = p - (mean of the ranks' parameters), the
/// momentum becomes m = b m + d, and the parameters p - r (d + b m), of all ranks. Here the inner optimiser's
/// moments become their mean too (the paper leaves each rank its own), so that a checkpoint is that of one
/// process.
class OuterStep {
 public:
  /// Keeps the pointers of `parameters`. Throws ValueError for an inner optimiser whose state is not all
  /// floating, which has no mean.
  OuterStep(const std::vector<Parameter>& parameters, const OptimizerState& inner,
            const SharingOptions& options, distributed::Group group);

  /// Replaces parameters and the inner state, and waits for all ranks.
  void take(Optimizer& inner);

  /// The momentum by its parameter's name and "outer_momentum": a checkpoint saves it.
  std::map<std::string, LazyTensor> state() const;
  /// Goes on from what state() gave, and the parameters as they are. Throws ValueError for one that is
  /// missing.
  void restore(const std::map<std::string, LazyTensor>& state);
  /// Whether a tensor of that name is its own.
  static bool is_own(const std::string& name);

 private:
  void begin_at_parameters();

  std::vector<Parameter> parameters_;
  SharingOptions options_;
  distributed::Group group_;
  std::vector<LazyTensor> before_;    // parameters after the outer step before
  std::vector<LazyTensor> momentum_;  // f32
};

}  // namespace caldera::detail
