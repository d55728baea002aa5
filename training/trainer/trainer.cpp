#include "training/trainer/trainer.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/distributed/communicator.h"
#include "engine/runtime/runtime.h"
#include "training/evaluate/evaluate.h"
#include "training/objectives/next_token.h"
#include "training/optim/weight_average.h"
#include "training/trainer/longest_step.h"
#include "training/trainer/resumable.h"
#include "training/trainer/seeds.h"
#include "training/trainer/step_batches.h"
#include "training/trainer/step_figures.h"
#include "training/trainer/step_update.h"

namespace caldera {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

class Run {
 public:
  Run(const ObjectiveModels& models, const Objective& objective, const TrainingSet& data,
      const TokenDataset* valid, const TrainOptions& options, std::span<TrainObserver* const> observers,
      TrainControl* control)
      : models_(models),
        objective_(objective),
        model_(models.policy()),
        data_(data),
        options_(options),
        observers_(observers),
        control_(control),
        ranks_(options),
        optimizer_(model_.trainable_parameters(), options, ranks_),
        schedule_{options.schedule, optimizer_.learning_rate(), options.warmup, options.iterations,
                  options.schedule_shape},
        batches_(models, objective, data, options) {
    if (model_.dtype() == DType::f16) scaler_.emplace(options.loss_scaling);
    schedule_.validate();
    if (!ranks_.is_alone() && options.sharing.sync_every == 0)
      exchange_.emplace(optimizer_.parameters(), options, scaler_.has_value());
    if (options.ema_decay > 0) average_.emplace(optimizer_.parameters(), options.ema_decay);
    if (valid != nullptr)
      validation_ = batches_for_evaluation(*valid, options.batch_size, options.val_batches);
  }

  std::optional<MemoryChoice> plan() {
    if (objective_.needs().kind == ExampleKind::prompt) return std::nullopt;
    const ForPlanning planning(model_);
    return longest_step().choose();
  }

  std::vector<MemoryRow> plan(std::span<const double> shares, std::uint64_t own_limit) {
    if (objective_.needs().kind == ExampleKind::prompt) return {};
    const ForPlanning planning(model_);
    return longest_step().compare(shares, own_limit);
  }

  TrainResult operator()() {
    if (control_ != nullptr) {
      state_.data_fingerprint = data_.fingerprint();
      if (const TrainState* from = control_->resumed(); from != nullptr) resume(*from);
    }
    model_.set_training(true);
    TrainResult result;
    prepare_memory(result);  // what does not fit leaves the files of observers as they are
    ranks_.learn_names();
    // Nothing is computed before all ranks are found to do the same.
    detail::require_same_run(ranks_, models_, objective_, data_, options_,
                             fmt::format("{}, going on after {}", validation_.size(), state_.step));
    const EndNotice end_notice(observers_);
    for (TrainObserver* observer : observers_) {
      if (resumed_step_ > 0) observer->on_resume(resumed_step_);
      observer->on_begin(options_.iterations);
      if (result.memory) observer->on_memory(*result.memory);
    }
    result.last_step = {.step = state_.step,
                        .loss = state_.loss,
                        .learning_rate = schedule_.learning_rate(std::max<std::int64_t>(0, state_.step - 1)),
                        .grad_norm = state_.grad_norm,
                        .metrics = {}};
    if (state_.step == 0) validate();
    bool stopped = false;
    while (!stopped) {
      // What was due when a run was stopped comes first when it goes on.
      if (is_validation_due()) validate();
      const bool out_of_patience = options_.patience > 0 && state_.misses >= options_.patience;
      if (out_of_patience) result.end = TrainEnd::no_progress;
      stopped = out_of_patience || state_.step == options_.iterations;
      if (control_ != nullptr && !stopped && is_between_batches() && stop_requested()) {
        result.end = TrainEnd::stopped;
        stopped = true;
      }
      save_if_due(stopped);
      if (stopped) break;
      try {
        result.last_step = train_step(state_.step + 1);
      } catch (const FileError&) {  // a row of a stream: what was trained until now is kept
        model_.set_training(false);
        save_if_due(true);
        throw;
      }
      ++state_.step;
      optimizer_.end_step(state_.step);
      state_.tokens += result.last_step.tokens;
      state_.loss = result.last_step.loss;
      state_.grad_norm = result.last_step.grad_norm;
      for (TrainObserver* observer : observers_) observer->on_step(result.last_step);
    }
    model_.set_training(false);
    if (average_) average_->exchange();
    result.initial_val_loss = state_.initial_val_loss;
    result.final_val_loss = state_.val_loss;
    result.final_val_metrics = state_.val_metrics;
    result.best = state_.best;
    result.peak_bytes = peak_bytes();
    return result;
  }

 private:
  // Observers hear of the end however it comes.
  class EndNotice {
   public:
    explicit EndNotice(std::span<TrainObserver* const> observers) : observers_(observers) {}
    ~EndNotice() {
      for (TrainObserver* observer : observers_) observer->on_end();
    }
    EndNotice(const EndNotice&) = delete;
    EndNotice& operator=(const EndNotice&) = delete;

   private:
    std::span<TrainObserver* const> observers_;
  };

  // The model is as in a training for a scope, and then as before, however that ends.
  class ForPlanning {
   public:
    explicit ForPlanning(CausalLM& model)
        : model_(model), was_training_(model.is_training()), checkpointing_(model.checkpointing()) {
      model_.set_training(true);
    }
    ~ForPlanning() {
      model_.set_training(was_training_);
      model_.set_checkpointing(std::move(checkpointing_));
    }
    ForPlanning(const ForPlanning&) = delete;
    ForPlanning& operator=(const ForPlanning&) = delete;

   private:
    CausalLM& model_;
    bool was_training_;
    std::vector<std::optional<Keep>> checkpointing_;
  };

  // The model has the averaged parameters for a scope, where there are such.
  class Averaged {
   public:
    explicit Averaged(std::optional<WeightAverage>& average) : average_(average) {
      if (average_) average_->exchange();
    }
    ~Averaged() {
      if (average_) average_->exchange();
    }
    Averaged(const Averaged&) = delete;
    Averaged& operator=(const Averaged&) = delete;

   private:
    std::optional<WeightAverage>& average_;
  };

  // Times of one step so far, summed over its batches.
  struct Times {
    double host_ms = 0;
    double device_ms = 0;
  };

  bool is_validation_due() const {
    if (state_.step == options_.iterations) return state_.validated_step < state_.step;
    // What came due within a group of steps is done at its end, where the best can be saved.
    return options_.val_every > 0 && is_between_batches() &&
           state_.step / options_.val_every > state_.validated_step / options_.val_every;
  }

  void validate() {
    if (validation_.empty()) return;
    const Averaged averaged(average_);
    const Evaluation result = evaluate(models_, objective_, validation_, options_.ranks.get());
    if (!std::isfinite(result.loss)) diverged("validation loss", result.loss, state_.step);
    for (TrainObserver* observer : observers_)
      observer->on_validation({state_.step, result.loss, result.metrics});
    state_.val_loss = result.loss;
    state_.val_metrics = result.metrics;
    state_.validated_step = state_.step;
    if (state_.step == 0) {
      state_.initial_val_loss = result.loss;
    } else if (const double score = score_of(result); !state_.best || score < state_.best->score) {
      state_.best = BestValidation{.step = state_.step, .loss = result.loss, .score = score};
      state_.misses = 0;
    } else {
      ++state_.misses;
    }
  }

  // The lower the better.
  double score_of(const Evaluation& result) const {
    if (objective_.best_by().empty()) return result.loss;
    const auto metric = std::ranges::find(result.metrics, objective_.best_by(), &Metric::name);
    return metric != result.metrics.end() ? -metric->value : result.loss;
  }

  // Whether the next step begins with batches of its own: what is prepared for several is not saved.
  // And ranks have parameters of their own between two outer steps.
  bool is_between_batches() const {
    return state_.step % objective_.steps_per_batch() == 0 && optimizer_.is_synchronised(state_.step);
  }

  void save_if_due(bool last) {
    if (control_ == nullptr || !(last || is_between_batches())) return;
    // What came due within a group of steps is saved at its end.
    const bool due =
        options_.save_every > 0 && state_.step / options_.save_every > saved_step_ / options_.save_every;
    const bool is_best = options_.save_best && state_.best && state_.best->step == state_.step;
    const bool requested = ranks_.is_alone() ? control_->save_requested() : agreed_.save;
    const bool changed = state_.step > resumed_step_ || last;
    if (!requested && !(changed && state_.step > 0 && (last || due || is_best))) return;
    TrainState state = state_;
    for (const Parameter& p : optimizer_.parameters()) state.parameters.emplace(p.name, *p.tensor);
    state.optimizer = optimizer_.state();
    if (exchange_) state.optimizer.tensors.merge(exchange_->state());
    state.data = batches_.position();
    if (scaler_) state.loss_scaler = scaler_->state();
    if (average_) state.averages = average_->state();
    const Averaged averaged(average_);
    control_->save(state, last);
    saved_step_ = state_.step;
  }

  void resume(const TrainState& from) {
    detail::check_resumable(from, {.data_fingerprint = state_.data_fingerprint,
                                   .parameters = optimizer_.parameters(),
                                   .is_scaled = scaler_.has_value(),
                                   .is_averaged = average_.has_value(),
                                   .iterations = options_.iterations});
    for (const Parameter& p : optimizer_.parameters()) *p.tensor = from.parameters.at(p.name);
    OptimizerState optimizer = from.optimizer;
    const auto kept = detail::GradientExchange::take_state(optimizer.tensors);
    optimizer_.restore(optimizer);
    if (exchange_) exchange_->restore_state(kept);
    batches_.restore(from.data);
    if (scaler_) scaler_->restore(*from.loss_scaler);
    if (average_) average_->restore(from.averages);
    state_ = from;
    state_.parameters.clear();
    state_.averages.clear();
    state_.optimizer = {};
    resumed_step_ = saved_step_ = from.step;
  }

  detail::StepParts parts() {
    return {.optimizer = optimizer_,
            .average = average_ ? &*average_ : nullptr,
            .average_is_new = average_.has_value() && resumed_step_ == 0,
            .scaler = scaler_ ? &*scaler_ : nullptr,
            .ranks = ranks_.is_alone() ? nullptr : &ranks_,
            .exchange = exchange_ ? &*exchange_ : nullptr};
  }

  detail::LongestStep longest_step() { return {models_, objective_, data_, validation_, options_, parts()}; }

  // Chooses what the steps keep, and evaluates gradients of the longest batch: what does not fit fails now.
  void prepare_memory(TrainResult& result) {
    // What nothing is in would lie beside what the steps take, and no plan counts it.
    (void)bytes_of_nothing(model_.device());
    if (objective_.needs().kind == ExampleKind::prompt) {  // what it trains on is written yet
      if (options_.checkpointing == Checkpointing::layer) checkpoint_all_layers(model_);
      return;
    }
    const detail::LongestStep longest = longest_step();
    if (options_.checkpointing == Checkpointing::layer || device_counters(model_.device()).limit_bytes > 0)
      result.memory = longest.choose();
    if (options_.try_longest) longest.try_gradients();
  }

  StepRecord train_step(std::int64_t step) {
    const Clock::time_point start = Clock::now();
    const double learning_rate = schedule_.learning_rate(step - 1);
    const std::vector<Batch>& micro_batches = batches_.of_step(step);
    std::int64_t tokens = 0, count = 0;
    for (const Batch& batch : micro_batches) {
      tokens += batch.counted();
      count += objective_.count(batch);
    }
    if (count == 0) throw Error(fmt::format("step {}: nothing counts in what is written", step));
    StepRecord record{.step = step, .learning_rate = learning_rate, .tokens = tokens, .metrics = {}};
    if (scaler_) record.loss_scale = scaler_->scale();
    Times times;
    detail::GradientSums grads;
    detail::StepFigures figures;
    const auto [first, last] = ranks_.batches();
    const auto count_of = [&](std::size_t batch) { return objective_.count(micro_batches[batch]); };
    const std::int64_t counted = ranks_.counted(count, count_of);
    const double waited = distributed::seconds_waited();
    Clock::time_point host_start = start;
    for (std::int64_t i = first; i < last; ++i) {
      // Of the step and the batch alone, so that a run that goes on, or is shared by others, draws the same.
      model_.set_random_seed(detail::dropout_seed(options_.seed, step, i));
      const bool is_last = i + 1 == last;
      ObjectiveSums sums = objective_.sums(models_, micro_batches[static_cast<std::size_t>(i)]);
      const std::vector<LazyTensor> outputs = detail::batch_outputs(parts(), sums, grads, options_,
                                                                    {.count = counted,
                                                                     .is_last = is_last,
                                                                     .sums_due = ranks_.sums_due(i),
                                                                     .learning_rate = learning_rate});
      const std::vector<double> values = evaluate_outputs(outputs, host_start, times);
      if (is_last) record.grad_norm = values[1];
      const double part = static_cast<double>(counted) / static_cast<double>(count);
      figures.add(values[0] * part, std::span(values).subspan(is_last ? 2 : 1), sums.metrics);
      host_start = Clock::now();
    }
    const double busy = (times.host_ms + times.device_ms) / 1000 - (distributed::seconds_waited() - waited);
    agreed_ = figures.finish(record, ranks_, requests(), busy, count_of);
    if (!std::isfinite(record.loss)) diverged("loss", record.loss, step);
    const bool finite = std::isfinite(record.grad_norm);
    if (scaler_) {
      scaler_->update(finite);
      record.skipped = !finite;
      if (!finite) optimizer_.skip_update();
    }
    if (!finite && (!scaler_ || scaler_->is_exhausted())) diverged("gradient norm", record.grad_norm, step);

    const double seconds = std::max(milliseconds(start, Clock::now()) / 1000, 1e-9);
    record.tokens_per_second = static_cast<double>(tokens) / seconds;
    record.host_ms = times.host_ms;
    record.device_ms = times.device_ms;
    record.peak_bytes = peak_bytes();
    return record;
  }

  bool stop_requested() { return ranks_.is_alone() ? control_->stop_requested() : agreed_.stop; }
  detail::StepRequests requests() const {  // to be told the others
    if (ranks_.is_alone() || control_ == nullptr) return {};
    return {.stop = control_->stop_requested(), .save = control_->save_requested()};
  }

  // Evaluates all in one go; the values of the last.
  static std::vector<double> evaluate_outputs(const std::vector<LazyTensor>& outputs,
                                              Clock::time_point host_start, Times& times) {
    const Clock::time_point device_start = Clock::now();
    eval(outputs);
    const std::vector<float> values = outputs.back().to_vector<float>();
    times.host_ms += milliseconds(host_start, device_start);
    times.device_ms += milliseconds(device_start, Clock::now());
    return {values.begin(), values.end()};
  }

  [[noreturn]] void diverged(const char* what, double value, std::int64_t step) const {
    throw Error(fmt::format(
        "the {} became {} in step {} of {}; training has stopped and nothing was saved of it: try "
        "a lower learning rate, a longer warm-up or a smaller max-grad-norm",
        what, value, step, options_.iterations));
  }

  std::uint64_t peak_bytes() const { return device_counters(model_.device()).peak_bytes; }

  const ObjectiveModels& models_;
  const Objective& objective_;
  CausalLM& model_;  // the one that is trained
  const TrainingSet& data_;
  const TrainOptions& options_;
  std::span<TrainObserver* const> observers_;
  TrainControl* control_;
  // Without parameters, optimiser, data position and loss scaler: in their places until it is saved.
  TrainState state_;
  std::int64_t resumed_step_ = 0;
  std::int64_t saved_step_ = 0;
  detail::RankShare ranks_;
  detail::RankOptimizer optimizer_;
  Schedule schedule_;
  std::optional<detail::GradientExchange> exchange_;  // of several ranks
  detail::StepRequests agreed_;                       // of several ranks: what any was asked for
  detail::StepBatches batches_;
  std::vector<Batch> validation_;
  std::optional<WeightAverage> average_;
  std::optional<LossScaler> scaler_;  // where the model computes in f16
};

void check(const ObjectiveModels& models, const Objective& objective, const TrainingSet& data,
           const TokenDataset* valid, const TrainOptions& options) {
  options.validate();
  if (objective.needs_reference()) models.require_reference(objective.name());
  if (objective.needs_teacher()) models.require_teacher(objective.name());
  for (const TokenDataset* part : {&data.sample(), valid}) {
    if (part == nullptr) continue;
    check_fits(*part, models.policy().config());
    check_fits(*part, objective);
  }
  objective.set_up(models.policy(), data.sample().classes(), mix_seed(options.seed, detail::kSetUpStream));
  check_batches(objective, options.batch_size, options.packing != Packing::none);
}

}  // namespace

std::int64_t steps_for_epochs(std::int64_t epochs, const TrainingSet& data, const TrainOptions& options) {
  const std::int64_t a_step = options.batch_size * options.grad_accumulation;
  const auto batches = data.batches(options.batch_size, detail::data_seed(options), options.packing);
  return (epochs * batches->rows_per_epoch() + a_step - 1) / a_step;
}

TrainResult train(const ObjectiveModels& models, const Objective& objective, const TrainingSet& data,
                  const TokenDataset* valid, const TrainOptions& options,
                  std::span<TrainObserver* const> observers, TrainControl* control) {
  check(models, objective, data, valid, options);
  return Run(models, objective, data, valid, options, observers, control)();
}

std::optional<MemoryChoice> plan_memory(const ObjectiveModels& models, const Objective& objective,
                                        const TrainingSet& data, const TokenDataset* valid,
                                        const TrainOptions& options) {
  check(models, objective, data, valid, options);
  return Run(models, objective, data, valid, options, {}, nullptr).plan();
}

std::vector<MemoryRow> plan_memory(const ObjectiveModels& models, const Objective& objective,
                                   const TrainingSet& data, const TokenDataset* valid,
                                   const TrainOptions& options, std::span<const double> shares,
                                   std::uint64_t own_limit) {
  check(models, objective, data, valid, options);
  return Run(models, objective, data, valid, options, {}, nullptr).plan(shares, own_limit);
}

TrainResult train(CausalLM& model, const TrainingSet& data, const TokenDataset* valid,
                  const TrainOptions& options, std::span<TrainObserver* const> observers,
                  TrainControl* control) {
  return train(ObjectiveModels(model), NextToken(), data, valid, options, observers, control);
}

}  // namespace caldera
