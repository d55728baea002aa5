// Switches a model's LoRA adapter off for a scope.
#pragma once

#include <vector>

namespace caldera {

class CausalLM;
class LoRALinear;
struct Weight;

/// Returns whether any projection of the model has an adapter (apply_lora, load_adapter).
bool has_adapter(CausalLM& model);

/// Computes as the model without its adapter while it lives: what is built meanwhile (graphs are built by
/// forward calls, not by eval) knows nothing of the adapter. Scopes may be nested. The model must outlive it
/// and keep its adapter meanwhile. One thread at a time, as for the model.
class AdapterSwitchedOff {
 public:
  explicit AdapterSwitchedOff(CausalLM& model);
  ~AdapterSwitchedOff();
  AdapterSwitchedOff(const AdapterSwitchedOff&) = delete;
  AdapterSwitchedOff& operator=(const AdapterSwitchedOff&) = delete;

 private:
  std::vector<LoRALinear*> switched_;  // those that were on
  std::vector<Weight*> exchanged_;     // those that the adapter trains themselves
};

}  // namespace caldera
