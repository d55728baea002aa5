// Embeddings: texts that belong together are to have like vectors, and other texts of the batch unlike ones
// (InfoNCE, van den Oord et al. 2018; sentence-transformers' MultipleNegativesRankingLoss).
#include <algorithm>
#include <memory>
#include <vector>

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
    std::vector<std::vector<std::int32_t>> texts;
    std::size_t longest = 1;
    for (std::int64_t row = 0; row < batch.batch_size; ++row) {
      texts.push_back(row_tokens(batch, row));
      longest = std::max(longest, texts.back().size());
    }
    const auto most = static_cast<std::size_t>(model.config().max_positions());
    const std::size_t width = std::min((longest + 15) / 16 * 16, most);
    std::vector<std::int32_t> ids;
    std::vector<std::uint8_t> present;
    for (std::vector<std::int32_t>& text : texts) {
      const std::size_t length = std::min(text.size(), width);
      text.resize(width, 0);
      ids.insert(ids.end(), text.begin(), text.end());
      for (std::size_t i = 0; i < width; ++i) present.push_back(i < length ? 1 : 0);
    }
    const Shape shape{batch.batch_size, static_cast<std::int64_t>(width)};
    const LazyTensor is_there =
        astype(LazyTensor::from_vector(present, shape, model.device()), DType::boolean);
    return normalize(pool(model.hidden_states(model.make_ids(ids, batch.batch_size)), is_there, pooling_));
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
