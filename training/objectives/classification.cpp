// Classification: a head that gives each class of texts a score.
#include <fmt/format.h>

#include <memory>
#include <vector>

#include "engine/base/error.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/sum.h"
#include "ops/loss/cross_entropy.h"
#include "ops/reduce/extrema.h"
#include "training/objectives/batch_scores.h"
#include "training/objectives/objective_kind.h"

namespace caldera {
namespace {

class Classification final : public Objective {
 public:
  std::string_view name() const override { return "classification"; }
  DataNeeds needs() const override { return {.labels = true}; }
  std::int64_t count(const Batch& batch) const override { return batch.batch_size; }
  void set_up(CausalLM& model, std::int64_t classes, std::uint64_t seed) const override {
    if (classes < 2) throw ValueError("classification: the labels of the data name one class alone");
    if (model.score_classes() < classes) model.add_score_head(classes, seed);
  }

  ObjectiveSums sums(const ObjectiveModels& models, const Batch& batch) const override {
    const LazyTensor scores = row_scores(models.policy(), batch);
    std::vector<std::int32_t> labels;
    for (const float label : batch.labels) {
      labels.push_back(static_cast<std::int32_t>(label));
      if (labels.back() >= scores.shape(-1))
        throw ValueError(fmt::format("classification: a label of {}, where the head has {} classes", label,
                                     scores.shape(-1)));
    }
    const LazyTensor targets = LazyTensor::from_vector(labels, Shape{batch.batch_size}, scores.device());
    return {.loss = sum(cross_entropy_terms(scores, targets).losses),
            .metrics = {{"accuracy", sum(astype(equal(argmax(scores, -1), targets), DType::f32))}}};
  }
};

}  // namespace

detail::ObjectiveKind classification_objective() {
  return {.name = "classification", .options = {}, .make = [](const ObjectiveOptions&) {
            return std::make_unique<Classification>();
          }};
}

}  // namespace caldera
