#include "lm/adapters/adapter_switch.h"

#include <memory>
#include <string>

#include "lm/adapters/lora.h"
#include "lm/models/causal_lm.h"

namespace caldera {
namespace {

std::vector<LoRALinear*> lora_layers(CausalLM& model) {
  std::vector<LoRALinear*> layers;
  model.visit_projections([&](const std::string&, const std::string&, std::unique_ptr<Projection>& slot) {
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
}

AdapterSwitchedOff::~AdapterSwitchedOff() {
  for (LoRALinear* layer : switched_) layer->set_enabled(true);
}

}  // namespace caldera
