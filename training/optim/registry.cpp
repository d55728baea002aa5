#include "training/optim/registry.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "training/optim/kind.h"

// A line an optimiser: F(NAME) stands for `detail::OptimizerKind NAME_optimizer()` of optim/NAME.cpp (lars
// and lamb: layerwise.cpp).
#define CALDERA_OPTIMIZERS(F) \
  F(adamw)                    \
  F(adamw_8bit)               \
  F(adam)                     \
  F(sgd)                      \
  F(lion)                     \
  F(adafactor)                \
  F(muon)                     \
  F(rmsprop)                  \
  F(adagrad)                  \
  F(nadam)                    \
  F(radam)                    \
  F(lars)                     \
  F(lamb)

namespace caldera {

#define CALDERA_DECLARE_OPTIMIZER(name) detail::OptimizerKind name##_optimizer();
CALDERA_OPTIMIZERS(CALDERA_DECLARE_OPTIMIZER)
#undef CALDERA_DECLARE_OPTIMIZER

namespace {

const std::vector<detail::OptimizerKind>& optimizer_kinds() {
#define CALDERA_CALL_OPTIMIZER(name) name##_optimizer(),
  static const std::vector<detail::OptimizerKind> kKinds{CALDERA_OPTIMIZERS(CALDERA_CALL_OPTIMIZER)};
#undef CALDERA_CALL_OPTIMIZER
  return kKinds;
}

}  // namespace

std::vector<std::string> optimizer_names() {
  std::vector<std::string> names;
  for (const detail::OptimizerKind& kind : optimizer_kinds()) names.push_back(kind.name);
  return names;
}

std::unique_ptr<Optimizer> make_optimizer(std::vector<Parameter> parameters, const OptimizerOptions& options,
                                          std::span<const Parameter> others) {
  const auto kind = std::ranges::find(optimizer_kinds(), options.name, &detail::OptimizerKind::name);
  if (kind == optimizer_kinds().end())
    throw ValueError(fmt::format("there is no optimizer '{}' (valid: {})", options.name,
                                 fmt::join(optimizer_names(), ", ")));
  for (const auto& [option, value] : options.more)
    if (std::ranges::find(kind->more, option) == kind->more.end())
      throw ValueError(fmt::format("{}: there is no option '{}' (valid: learning_rate, weight_decay, {})",
                                   kind->name, option, fmt::join(kind->more, ", ")));
  std::unique_ptr<Optimizer> optimizer = kind->make(std::move(parameters), options);
  if (!options.groups.empty()) optimizer->set_groups(options.groups, others);
  return optimizer;
}

}  // namespace caldera
