// AdamW: Adam with decoupled weight decay (Loshchilov and Hutter 2019), with the numerics of
// torch.optim.AdamW.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ops/nn/optimizer_updates.h"
#include "training/optim/optimizer.h"
#include "training/optim/optimizer_options.h"

namespace caldera {

struct AdamWOptions {
  double learning_rate = 1e-4;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;
  /// Throws ValueError naming the field that is out of its domain.
  void validate() const;
};

/// The formula of adamw_update (ops/nn/optimizer_updates.h). State: "exp_avg" and "exp_avg_sq".
class AdamW final : public Optimizer {
 public:
  /// Throws ValueError for bad options; see also Optimizer.
  explicit AdamW(std::vector<Parameter> parameters, const AdamWOptions& options = {});

  const AdamWOptions& options() const { return options_; }

 protected:
  Updated updated(const Step& step) const override;
  void prepare(const Numbers& numbers) override;

 private:
  AdamWOptions options_;
  std::optional<AdamWStep> step_;  // the present one
};

namespace detail {

/// Takes AdamW's options out of those by name.
AdamWOptions adamw_options(const OptimizerOptions& named, double weight_decay = AdamWOptions().weight_decay);

}  // namespace detail
}  // namespace caldera
