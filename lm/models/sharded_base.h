// shard_base: the frozen weights of a model's layers, divided among ranks.
#pragma once

#include <cstdint>

namespace caldera {

namespace distributed {
class Group;
}  // namespace distributed

class CausalLM;

/// Says what became of a model's weights.
struct ShardedBase {
  std::int64_t parameters = 0;           ///< that are divided, counted as a whole
  std::int64_t own_bytes = 0;            ///< of them that this rank has
  std::int64_t largest_layer_bytes = 0;  ///< of which two are there as a whole while the model computes
  std::int64_t whole_bytes = 0;          ///< of what is not divided: embeddings, head, norms and biases
};

/// Divides the matrices of the model's layers among the ranks of a group: each keeps its part, and the layer
/// that computes is gathered, and the next one meanwhile, in the backward pass again. What is computed has
/// the same bits. From then on all ranks must compute as many batches; adapters are applied afterwards.
/// Matrices of 16 bits that were read as files have them become those of the model's dtype, in every layer
/// and beside them. Collective; a group of one changes nothing.
///
/// Throws ValueError for weights that are quantised otherwise, and for a model without layers of matrices.
ShardedBase shard_base(CausalLM& model, const distributed::Group& group);

}  // namespace caldera
