// StepFigures: what a step reports, added up over its batches, be they of one rank or of several. Private to
// training/trainer/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "training/data/training_set.h"
#include "training/objectives/objective.h"
#include "training/trainer/observer.h"
#include "training/trainer/rank_share.h"

namespace caldera::detail {

/// Says what somebody asked a run for.
struct StepRequests {
  bool stop = false;
  bool save = false;
};

class StepFigures {
 public:
  /// Adds a batch of this rank, in order: its part of the step's loss, and the sums of its metrics.
  void add(double loss, std::span<const double> values, const std::vector<MetricSum>& metrics);
  /// Puts loss and metrics of all ranks' batches into the record, in the order of batches, so that they do
  /// not depend on the number of ranks; `count` says what counts in a batch of the step. `busy` are the
  /// seconds that this rank was not waiting, of which the record names the rank with most. Returns what any
  /// rank was asked for. Waits for all ranks.
  StepRequests finish(StepRecord& record, const RankShare& ranks, StepRequests own, double busy,
                      const std::function<std::int64_t(std::size_t batch)>& count) const;

 private:
  std::vector<double> figures_;
  std::vector<MetricSum> names_;
};

/// The seed of dropout in a batch of a step.
std::uint64_t dropout_seed(std::uint64_t seed, std::int64_t step, std::int64_t batch);

/// Throws ValueError, on all ranks the same, unless they train alike; `more` is what else must be equal.
void require_same_run(const RankShare& ranks, const ObjectiveModels& models, const Objective& objective,
                      const TrainingSet& data, const TrainOptions& options, const std::string& more);

}  // namespace caldera::detail
