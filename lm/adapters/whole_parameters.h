// Parameters that an adapter trains themselves, beside its factors: PEFT's modules_to_save and bias. Private
// to lm/adapters/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/tensor/shape.h"
#include "lm/adapters/lora_options.h"
#include "lm/nn/module.h"

namespace caldera {

class CausalLM;

namespace detail {

/// Names a parameter that is trained itself.
struct WholeParameter {
  std::string name;  ///< the model's
  Shape shape;
  /// Its names in files of adapters, all of which are written and hold the same: the table of a model whose
  /// head is its embedding has two.
  std::vector<std::string> stored;
  std::string older = {};    ///< a name that some files have in the stead of stored[0]
  bool is_optional = false;  ///< files that lack it leave the model's own
};

/// Returns what the options name, in the model's order; the factors' modules are those of `adapted`, by their
/// paths. Throws ValueError for an entry of modules_to_save that no module of the model has. The head that
/// scores texts is none of them (CausalLM::add_score_head).
std::vector<WholeParameter> whole_parameters(CausalLM& model, const LoRAOptions& options,
                                             const std::vector<std::string>& adapted);
/// The options' modules_to_save, both names of a head that is the embedding where one is given.
std::vector<std::string> resolve_saved_modules(CausalLM& model, const LoRAOptions& options);

/// Whether a module, or one around it, is among `modules`.
bool is_within(const std::vector<std::string>& modules, std::string_view path);

/// Makes them trainable, in f32, beginning as they are. Weight::base keeps what they were.
void train_whole(CausalLM& model, const std::vector<WholeParameter>& parameters);
/// Returns those that are trained so now.
std::vector<Weight*> weights_trained_whole(Module& model);
/// Makes the parameters what `weight` times their change makes of them, and of no adapter any more.
void merge_whole(Module& model, double weight);

}  // namespace detail
}  // namespace caldera
