// SharingOptions: how several ranks share a training run.
#pragma once

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace caldera {

struct SharingOptions {
  bool fast_reduction = false;   ///< gradients are summed in an order of MPI's choice
  bool shard_optimizer = false;  ///< each rank keeps the optimiser's state of its share of the parameters
  /// The frozen weights are divided too (shard_base): every rank has to compute as many batches as any other.
  bool base_is_sharded = false;
  /// Each rank updates its parameters by its own gradients; after so many steps all become their mean, and an
  /// outer optimiser takes the step there (DiLoCo, Douillard et al. 2023). 0: gradients are summed each step.
  std::int64_t sync_every = 0;
  double outer_learning_rate = 0.7;
  double outer_momentum = 0.9;       ///< Nesterov's
  DType gradient_type = DType::f32;  ///< that gradients are sent in: f32, or bf16 with feedback of the error
  double top_share = 1;  ///< share of the gradients' elements that are sent, the largest; likewise
};

}  // namespace caldera
