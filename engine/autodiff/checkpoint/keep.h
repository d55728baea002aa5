// Keep: which values of a checkpointed function wait for its backward pass; the others are computed again.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// A value that a checkpointed function computes from its arguments.
struct InnerValue {
  LazyTensor tensor;
  std::vector<std::uint32_t> inputs;  ///< which inner values it is computed from, arguments left out
  bool is_needed = false;             ///< the backward pass reads it; of an attention, its result too
  /// It lies inside of an attention, between the product of queries and keys, that one included, and the
  /// product with the values: a plan that computes attention by tiles never has it whole.
  bool is_in_attention = false;
  /// It is such a product with the values. Where it is kept, the gradients compute no row of the attention
  /// again, as what they need of each row is kept with it (two numbers).
  bool is_attention_result = false;
};

/// Chooses what is kept. A value type; what it calls must be as thread-safe as the function that it is for.
class Keep {
 public:
  /// Gets all values of one call in the order of computing, and says of each whether it is kept.
  using Choice = std::function<std::vector<bool>(std::span<const InnerValue>)>;

  /// Keeps nothing.
  Keep() = default;
  /// Asks `choice` each time that a call is differentiated. Its answer must have a word for each value
  /// (ValueError).
  explicit Keep(Choice choice) : choice_(std::move(choice)) {}

  bool is_nothing() const { return !choice_; }
  std::vector<bool> operator()(std::span<const InnerValue> values) const;

 private:
  Choice choice_;
};

/// The strategies that have names, as those of jax.checkpoint_policies.
namespace keep {

/// Computes all of it again.
Keep nothing();
/// Computes nothing again: as without checkpoint.
Keep everything();
/// Keeps what products give, quantised ones and those of convolutions among them; of an attention, what it
/// gives.
Keep products();
/// Keeps what products with a matrix give: those of linear layers, not those between activations.
Keep products_without_batch();
/// Keeps the values that name() gave one of these names.
Keep named(std::initializer_list<std::string> names);
/// Keeps all values but those that name() gave one of these names.
Keep all_but(std::initializer_list<std::string> names);

}  // namespace keep

/// Gives a value a name that strategies can speak of. Computes nothing. Throws ValueError for an empty name.
LazyTensor name(const LazyTensor& x, std::string_view name);

}  // namespace caldera
