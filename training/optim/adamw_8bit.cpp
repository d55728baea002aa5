// AdamW with its moments in 8 bits (Dettmers et al. 2022): a quarter of their memory, by blocks of 256 with a
// scale each (block_code.h).
#include <optional>

#include "training/optim/adamw.h"
#include "training/optim/block_code.h"
#include "training/optim/kind.h"

namespace caldera {
namespace {

/// Small tensors cost nothing, and are the ones that suffer: they stay in 32 bits, as in bitsandbytes.
constexpr double kSmallestCoded = 4096;

class AdamW8bit final : public Optimizer {
 public:
  AdamW8bit(std::vector<Parameter> parameters, const AdamWOptions& options, std::int64_t smallest)
      : Optimizer(
            "AdamW8bit", std::move(parameters),
            [smallest](const LazyTensor& parameter) {
              if (!is_coded(parameter, smallest)) return slots_like(parameter, {"exp_avg", "exp_avg_sq"});
              const std::int64_t blocks = detail::BlockCode::blocks(parameter);
              const Shape codes{blocks, detail::BlockCode::kBlock};
              const Shape scales{blocks, 1};
              return std::vector<Slot>{{"exp_avg.codes", codes, DType::u8},
                                       {"exp_avg.absmax", scales, DType::f32},
                                       {"exp_avg_sq.codes", codes, DType::u8},
                                       {"exp_avg_sq.absmax", scales, DType::f32}};
            },
            options.learning_rate, options.weight_decay),
        options_(options),
        first_(/*is_signed=*/true, inputs().front().device()),
        second_(/*is_signed=*/false, inputs().front().device()) {
    options_.validate();
  }

 private:
  static bool is_coded(const LazyTensor& parameter, std::int64_t smallest) {
    return parameter.dtype() != DType::f64 && parameter.numel() >= std::max<std::int64_t>(smallest, 1);
  }

  void prepare(const Numbers& numbers) override {
    step_.emplace(AdamWScalars{.learning_rate = numbers.learning_rate,
                               .beta1 = options_.beta1,
                               .beta2 = options_.beta2,
                               .eps = options_.eps,
                               .weight_decay = numbers.weight_decay,
                               .step = numbers.step});
  }

  Updated updated(const Step& step) const override {
    if (step.slots.size() == 2) {
      AdamWUpdate update = (*step_)(step.parameter, step.grad, step.slots[0], step.slots[1]);
      return {std::move(update.param), {std::move(update.m), std::move(update.v)}};
    }
    const Shape& shape = step.parameter.shape();
    const AdamWUpdate update =
        (*step_)(step.parameter, step.grad, first_.decode({step.slots[0], step.slots[1]}, shape),
                 second_.decode({step.slots[2], step.slots[3]}, shape));
    const detail::CodedTensor m = first_.encode(update.m);
    const detail::CodedTensor v = second_.encode(update.v);
    return {update.param, {m.codes, m.absmax, v.codes, v.absmax}};
  }

  AdamWOptions options_;
  detail::BlockCode first_;
  detail::BlockCode second_;
  std::optional<AdamWStep> step_;
};

}  // namespace

detail::OptimizerKind adamw_8bit_optimizer() {
  return {"adamw_8bit",
          {"beta1", "beta2", "eps", "min_8bit_size"},
          [](std::vector<Parameter> parameters, const OptimizerOptions& o) -> std::unique_ptr<Optimizer> {
            return std::make_unique<AdamW8bit>(
                std::move(parameters), detail::adamw_options(o),
                static_cast<std::int64_t>(o.number("min_8bit_size", kSmallestCoded)));
          }};
}

}  // namespace caldera
