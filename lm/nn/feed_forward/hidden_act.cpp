#include "lm/nn/feed_forward/hidden_act.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "engine/base/error.h"
#include "ops/nn/activations.h"

namespace caldera {
namespace {

struct Named {
  std::string_view name;
  Activation function;
};

LazyTensor gelu_exact(const LazyTensor& x) { return gelu(x, GeluForm::exact); }
LazyTensor gelu_tanh(const LazyTensor& x) { return gelu(x, GeluForm::tanh); }

// Two names of one function are two that checkpoints have for it.
constexpr std::array<Named, 6> kActivations{{{"gelu", gelu_exact},
                                             {"gelu_new", gelu_tanh},
                                             {"gelu_pytorch_tanh", gelu_tanh},
                                             {"relu", relu},
                                             {"silu", silu},
                                             {"swish", silu}}};

}  // namespace

Activation activation_of(std::string_view hidden_act) {
  const auto* found = std::ranges::find(kActivations, hidden_act, &Named::name);
  if (found != kActivations.end()) return found->function;
  std::string known;
  for (const Named& activation : kActivations)
    known += (known.empty() ? "" : ", ") + std::string(activation.name);
  throw ValueError(fmt::format("there is no activation '{}' (valid: {})", hidden_act, known));
}

}  // namespace caldera
