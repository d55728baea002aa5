// Distillation (Hinton et al. 2015): the model is to give every next token the probability that a teacher
// gives it.
#include <memory>

#include "lm/nn/precision.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/sum.h"
#include "ops/elementwise/exponential.h"
#include "ops/nn/softmax.h"
#include "training/objectives/batch_scores.h"
#include "training/objectives/loss.h"
#include "training/objectives/objective_kind.h"

namespace caldera {
namespace {

class Distillation final : public Objective {
 public:
  explicit Distillation(const ObjectiveOptions& options)
      : temperature_(options.more.at("temperature")), hard_(options.more.at("hard_weight")) {}

  std::string_view name() const override { return "distillation"; }
  bool needs_teacher() const override { return true; }

  ObjectiveSums sums(const ObjectiveModels& models, const Batch& batch) const override {
    CausalLM& student = models.policy();
    const LazyTensor weights = batch_weights(student, batch), targets = batch_targets(student, batch);
    const LazyTensor states = batch_hidden_states(student, batch);
    LazyTensor divergence, loss, nll;
    models.reference([&](CausalLM& teacher) {
      const LazyTensor of_teacher = batch_hidden_states(teacher, batch);
      divergence =
          head_divergence_sum({of_teacher, [&](const LazyTensor& rows) { return teacher.logits(rows); }},
                              {states, [&](const LazyTensor& rows) { return student.logits(rows); }},
                              student.config().vocab_size, temperature_, weights);
      return divergence;
    });
    nll = head_cross_entropy_sum(
              states, student.config().vocab_size,
              [&](const LazyTensor& rows) { return student.logits(rows); }, targets, weights)
              .loss;
    // Gradients of the divergence shrink with the square of the temperature.
    loss = divergence * ((1 - hard_) * temperature_ * temperature_);
    if (hard_ > 0) loss = loss + nll * hard_;
    return {.loss = loss, .metrics = {{"kl", divergence}, {"nll", nll}}};
  }

 private:
  double temperature_;
  double hard_;
};

}  // namespace

detail::ObjectiveKind distillation_objective() {
  return {.name = "distillation",
          .options = {{.name = "temperature",
                       .help = "What logits are divided by",
                       .otherwise = 1,
                       .low_is_out = true},
                      {.name = "hard_weight",
                       .help = "Share of the loss that is the cross-entropy of the data, not the teacher",
                       .high = 1}},
          .make = [](const ObjectiveOptions& options) { return std::make_unique<Distillation>(options); }};
}

}  // namespace caldera
