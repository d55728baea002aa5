// Objective: what a training run minimises. The trainer knows objectives by this interface alone; each is a
// file next to this one and a line in registry.cpp.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lm/models/causal_lm.h"
#include "lm/tokenizers/tokenizer.h"
#include "training/data/batch.h"
#include "training/data/forms/example.h"
#include "training/objectives/metric.h"

namespace caldera {

/// Gives an objective the models that it computes with, and their tokenizer. None is owned; all must outlive
/// it.
class ObjectiveModels {
 public:
  /// `policy` is the model that is trained. `reference` is a model that is not; without one the reference is
  /// the policy with its adapter switched off.
  /// The tokenizer is for objectives that write answers.
  explicit ObjectiveModels(CausalLM& policy, CausalLM* reference = nullptr,
                           std::shared_ptr<const Tokenizer> tokenizer = nullptr)
      : policy_(policy), reference_(reference), tokenizer_(std::move(tokenizer)) {}

  CausalLM& policy() const { return policy_; }
  /// May be null.
  const std::shared_ptr<const Tokenizer>& tokenizer() const { return tokenizer_; }

  /// Throws ValueError where there is no reference: no second model, and no adapter to switch off.
  void require_reference(std::string_view objective) const;
  /// Throws ValueError where there is no second model.
  void require_teacher(std::string_view objective) const;

  /// Returns what `compute` makes with the reference model, without a gradient. The model is in evaluation
  /// mode meanwhile, and is put back into the mode that it was in.
  LazyTensor reference(const std::function<LazyTensor(CausalLM& model)>& compute) const;

 private:
  CausalLM& policy_;
  CausalLM* reference_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

/// Says what an objective needs of its data.
struct DataNeeds {
  ExampleKind kind = ExampleKind::text;
  bool labels = false;            ///< each example has one
  bool completions_only = false;  ///< predictions of prompts do not count
  std::int64_t least_batch = 1;   ///< examples a batch
};

/// Holds what an objective makes of a batch, lazily.
struct ObjectiveSums {
  LazyTensor loss;                 ///< a scalar: the sum of the losses of all that counts
  std::vector<MetricSum> metrics;  ///< the same names in the same order for every batch
};

/// Thread-safety: const methods may be called from several threads, each with models of its own.
class Objective {
 public:
  Objective() = default;
  virtual ~Objective() = default;
  Objective(const Objective&) = delete;
  Objective& operator=(const Objective&) = delete;

  /// The name under which the registry makes it.
  virtual std::string_view name() const = 0;
  /// Sequences in one example of its data: 1 for texts, 2 for pairs (the preferred one first).
  virtual std::int64_t sequences_per_example() const { return 1; }
  /// Whether it computes with ObjectiveModels::reference.
  virtual bool needs_reference() const { return false; }
  /// Whether that must be a second model.
  virtual bool needs_teacher() const { return false; }
  virtual DataNeeds needs() const {
    return {.kind = sequences_per_example() == 2 ? ExampleKind::preference : ExampleKind::text};
  }

  /// Gives the model what the objective trains beside it, before the first step; `classes` is one more than
  /// the largest label of the data, 0 without labels.
  virtual void set_up(CausalLM& /*model*/, std::int64_t /*classes*/, std::uint64_t /*seed*/) const {}

  /// Makes of a batch of data what is trained on: for objectives whose rows the model writes itself. What is
  /// random in it is a function of `seed`.
  virtual Batch prepare(const ObjectiveModels& /*models*/, Batch batch, std::uint64_t /*seed*/) const {
    return batch;
  }
  /// Steps that are made with a batch once it is prepared. A run stops and is saved between batches alone:
  /// what is prepared is not saved.
  virtual std::int64_t steps_per_batch() const { return 1; }

  /// The metric by which validations are compared, the higher the better; empty: the loss, the lower the
  /// better.
  virtual std::string_view best_by() const { return {}; }

  /// The number of things in `batch` that count, by which sums are divided: predictions, or pairs. Sums and
  /// counts are added up over the batches of a step, so that a step's loss is the mean over all of it.
  virtual std::int64_t count(const Batch& batch) const { return batch.counted(); }
  /// Builds the sums over `batch`, which has sequences_per_example() rows for each example.
  virtual ObjectiveSums sums(const ObjectiveModels& models, const Batch& batch) const = 0;
};

}  // namespace caldera
