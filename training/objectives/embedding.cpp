// Embeddings: texts that belong together are to have like vectors, and other texts of the batch unlike ones
// (InfoNCE, van den Oord et al. 2018; sentence-transformers' MultipleNegativesRankingLoss).
#include <memory>

#include "lm/embed/pooling.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/ranges.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/linalg/matmul.h"
#include "ops/loss/cross_entropy.h"
#include "ops/reduce/extrema.h"
#include "training/objectives/batch_scores.h"
#include "training/objectives/objective_kind.h"

namespace caldera {
namespace {

class Contrastive final : public Objective {
 public:
  explicit Contrastive(const ObjectiveOptions& options)
      : temperature_(options.more.at("similarity_temperature")),
        pooling_(pooling_of(options.words.at("pooling"))) {}

  std::string_view name() const override { return "embedding"; }
  std::int64_t sequences_per_example() const override { return 2; }
  DataNeeds needs() const override { return {.kind = ExampleKind::similar, .least_batch = 2}; }
  std::int64_t count(const Batch& batch) const override { return batch.batch_size / 2; }

  ObjectiveSums sums(const ObjectiveModels& models, const Batch& batch) const override {
    const LazyTensor vectors = embed(models.policy(), batch);
    const LazyTensor anchors = every(vectors, 0, 2), positives = every(vectors, 1, 2);
    const LazyTensor scores = matmul(anchors, transpose(positives)) / temperature_;
    const LazyTensor own = arange(batch.batch_size / 2, DType::i32, scores.device());
    const LazyTensor found = equal(argmax(scores, -1), own);
    return {.loss = sum(cross_entropy_terms(scores, own).losses),
            .metrics = {{"accuracy", sum(astype(found, DType::f32))},
                        {"similarity", sum(sum(anchors * positives, {-1}))}}};
  }

 private:
  /// The vectors of the rows, of length 1: (rows, hidden).
  LazyTensor embed(CausalLM& model, const Batch& batch) const {
    const WholeRows rows = whole_rows(model, batch);
    return normalize(pool(model.hidden_states(rows.ids), rows.present, pooling_));
  }

  double temperature_;
  Pooling pooling_;
};

}  // namespace

detail::ObjectiveKind embedding_objective() {
  return {.name = "embedding",
          .options = {{.name = "similarity_temperature",
                       .help = "What similarities of vectors are divided by",
                       .otherwise = 0.05,
                       .low_is_out = true},
                      {.name = "pooling",
                       .help = "How the vectors of a text's tokens become one",
                       .kind = ObjectiveOption::Kind::word,
                       .words = {"lasttoken", "mean", "max", "cls"}}},
          .make = [](const ObjectiveOptions& options) { return std::make_unique<Contrastive>(options); }};
}

}  // namespace caldera
