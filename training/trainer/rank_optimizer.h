// RankOptimizer: the optimiser of a run, which ranks may share. Private to training/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "training/optim/optimizer.h"
#include "training/trainer/outer_step.h"
#include "training/trainer/rank_share.h"
#include "training/trainer/train_options.h"

namespace caldera::detail {

/// Each rank updates all parameters by the same gradients; or, with SharingOptions::shard_optimizer, its
/// share of them, which it then sends to the others (ZeRO, stage 1: S. Rajbhandari et al. 2020): the state of
/// the others' is nowhere on it. A parameter belongs to one rank as a whole, so every optimiser can do so,
/// and gives the same bits.
class RankOptimizer {
 public:
  /// `ranks` and the options must outlive it. Throws what make_optimizer() throws, and ValueError for fewer
  /// parameters than ranks that share them.
  RankOptimizer(std::vector<Parameter> parameters, const TrainOptions& options, const RankShare& ranks);

  /// Returns all parameters, whoever updates them.
  const std::vector<Parameter>& parameters() const { return parameters_; }
  std::vector<LazyTensor> inputs() const;
  double learning_rate() const { return own_->learning_rate(); }

  /// Replace what this rank has by its update, as Optimizer does, from the gradients of all parameters.
  void update(std::span<const LazyTensor> grads, double learning_rate);
  void update_if(const LazyTensor& apply, std::span<const LazyTensor> grads, double learning_rate);
  void skip_update() { own_->skip_update(); }
  /// Returns all parameters, then the state that this rank has.
  std::vector<LazyTensor> outputs() const;

  /// Takes the parameters that other ranks have updated in step `step`, and the outer step where one is due
  /// (SharingOptions::sync_every). Waits for all ranks then.
  void end_step(std::int64_t step);
  /// Whether all ranks have the same parameters after that step.
  bool is_synchronised(std::int64_t step) const;

  /// The state that this rank has.
  OptimizerState own_state() const { return own_->state(); }
  void restore_own(const OptimizerState& state) { own_->restore(state); }
  /// The state of all ranks, as one process would have it, on rank 0. Waits for all.
  OptimizerState state() const;
  /// Takes of it what this rank has. The parameters are restored before. Throws as Optimizer::restore().
  void restore(const OptimizerState& whole);

 private:
  bool is_sharded() const { return own_indices_.size() < parameters_.size(); }
  std::vector<LazyTensor> own_of(std::span<const LazyTensor> grads) const;
  /// Sends the parameters that were updated here, and takes those of others: when all is computed, so that
  /// ranks, which compute different updates, have their messages in one order.
  void exchange_parameters();

  const TrainOptions& options_;
  const RankShare& ranks_;
  std::vector<Parameter> parameters_;
  std::vector<std::size_t> owner_;        // the rank of each
  std::vector<std::size_t> own_indices_;  // of this rank's
  std::unique_ptr<Optimizer> own_;
  std::optional<OuterStep> outer_;
};

}  // namespace caldera::detail
