#include "lm/adapters/adapter_switch.h"

#include <memory>
#include <string>
#include <utility>

#include "lm/adapters/lora.h"
#include "lm/adapters/whole_parameters.h"
#include "lm/models/causal_lm.h"

namespace caldera {
namespace {

std::vector<LoRALinear*> lora_layers(CausalLM& model) {
  std::vector<LoRALinear*> layers;
  model.visit_adaptable([&](const std::string&, const std::string&, std::unique_ptr<Projection>& slot) {
    if (auto* layer = dynamic_cast<LoRALinear*>(slot.get())) layers.push_back(layer);
  });
  return layers;
}

}  // namespace

bool has_adapter(CausalLM& model) { return !lora_layers(model).empty(); }

AdapterSwitchedOff::AdapterSwitchedOff(CausalLM& model) {
  for (LoRALinear* layer : lora_layers(model)) {
    if (!layer->is_enabled()) continue;
    layer->set_enabled(false);
    switched_.push_back(layer);
  }
  if (!switched_.empty()) exchanged_ = detail::weights_trained_whole(model);
  for (Weight* weight : exchanged_) std::swap(weight->tensor, weight->base);
}

AdapterSwitchedOff::~AdapterSwitchedOff() {
  for (LoRALinear* layer : switched_) layer->set_enabled(true);
  for (Weight* weight : exchanged_) std::swap(weight->tensor, weight->base);
}

}  // namespace caldera
