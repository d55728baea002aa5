// Evaluation: from the graph behind some outputs to a job on a device's stream.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <unordered_map>
#include <utility>

#include "engine/base/error.h"
#include "engine/base/small_allocator.h"
#include "engine/device/backend.h"
#include "engine/graph/data_leaf.h"
#include "engine/graph/histories.h"
#include "engine/graph/origins_walk.h"
#include "engine/runtime/capture/device_partition.h"
#include "engine/runtime/capture/donation_stats.h"
#include "engine/runtime/capture/graph_key.h"
#include "engine/runtime/capture/history_choice.h"
#include "engine/runtime/capture/totals.h"
#include "engine/runtime/devices.h"
#include "engine/runtime/job_inputs.h"
#include "engine/runtime/memory_pressure.h"
#include "engine/runtime/plan_finder.h"
#include "engine/runtime/profile_hooks.h"
#include "engine/runtime/runtime.h"
#include "engine/runtime/workspace.h"

namespace caldera {
namespace {

/// Operations that need tensors of host data ask the graph for them, which knows no device.
[[maybe_unused]] const bool kMakesHostLeaves = set_host_leaf_maker(&LazyTensor::from_bytes);

/// Values that an evaluation makes for itself while it is scheduled: what one part of a graph over several
/// devices gives to another. Their nodes stay lazy, unless they are asked for.
using InnerValues = std::unordered_map<const Node*, Value>;

/// A job on its way.
struct Launch {
  std::shared_ptr<OpenDevice> device;
  std::shared_ptr<Job> job;
  std::shared_ptr<Event> done;
  bool run_inline = false;  // by the thread that scheduled it
};

/// What an evaluation waits for.
struct Scheduled {
  SmallList<Launch> launches;
  std::vector<std::shared_ptr<Event>> earlier;  // of what other evaluations compute

  std::vector<std::shared_ptr<Event>> events() && {
    for (Launch& launch : launches) earlier.push_back(std::move(launch.done));
    return std::move(earlier);
  }
};

/// An attempt to schedule some outputs, under graph_mutex(). All that may throw, and all that may find a plan
/// missing, comes before anything has changed: a graph is scheduled whole or not at all.
class Attempt {
 public:
  Attempt(PlanFinder& plans, Scheduled& scheduled, std::vector<NodePtr>& bin, bool with_optional)
      : work_(workspace()), plans_(plans), scheduled_(scheduled), bin_(bin), with_optional_(with_optional) {}
  ~Attempt() { work_.finish(); }
  Attempt(const Attempt&) = delete;
  Attempt& operator=(const Attempt&) = delete;

  /// Whether it takes in what nobody asked for.
  bool has_totals() const { return has_totals_; }

  /// False: a plan has to be made first.
  bool run(std::span<const LazyTensor> outputs, bool run_inline) {
    scheduled_ = {};
    drop_loose_values(bin_);
    capture(outputs);
    bool crosses = false;
    for (std::size_t i = work_.used; i-- > 0;) {  // the first one's walk is the latest then
      GraphKey& c = work_.captures[i];
      c.fill();
      if (with_optional_ && !c.crosses) add_totals(c);
      crosses = crosses || c.crosses;
    }
    const bool found = crosses ? add_parts() : add_captures();
    if (found) {
      settle();
      // The jobs of parts run on the streams' own threads: one that ran them all itself would be in the way
      // of those that wait.
      for (Launch& launch : scheduled_.launches) {
        RunRecorder::add(launch.job->record);
        launch.run_inline = launch.device->stream->enqueue(launch.job, run_inline && !crosses);
      }
      bound_histories(bin_);
    }
    return found;
  }

 private:
  void capture(std::span<const LazyTensor> outputs) {
    const std::uint64_t walk = next_walk();
    for (const LazyTensor& output : outputs) {
      Node& node = output.node();
      if (node.has_value()) {
        if (node.value().ready) scheduled_.earlier.push_back(node.value().ready);
        // Nobody had asked for it when it was computed by the way; what is asked for does not go.
        if (node.is_optional_value()) node.keep_history(1, 0, node.history_depth());
        continue;
      }
      if (node.walk == walk) continue;
      node.walk = walk;
      work_.capture_on(node.device()).outputs.push_back(&node);
    }
  }

  void add_totals(GraphKey& c) {
    std::vector<NodePtr> totals = find_totals(c);
    if (totals.empty()) return;
    has_totals_ = true;
    for (NodePtr& total : totals) {
      c.outputs.push_back(total.get());
      bin_.push_back(std::move(total));
    }
    c.fill();
  }

  /// Captures of which none crosses devices: a job each.
  bool add_captures() {
    scheduled_.launches.reserve(work_.used);
    for (std::size_t i = 0; i < work_.used; ++i) {
      GraphKey& c = work_.captures[i];
      if (i > 0) c.fill();  // captures share leaves that are numbers, and the walk marks them
      std::shared_ptr<OpenDevice> open = open_device(c.device);
      const std::shared_ptr<Job> job = new_job();
      if (!find_plan(*job, c, open)) return false;
      const Plan& plan = job->executable->plan();
      const bool may_donate = !job->executable->may_fail();
      HistoryChoice& choice = work_.choice;
      choose_histories(c, may_donate ? &plan : nullptr, choice);
      bind(*job, c, open, nullptr, choice.donors);
      for (std::size_t k = 0; k < c.outputs.size(); ++k) {
        work_.outputs.push_back({.node = c.outputs[k],
                                 .value = {job->storages[c.data.size() + k], 0, job->event_of(k)},
                                 .job = job.get(),
                                 .keeps = choice.keeps[k],
                                 .has_origins = choice.has_origins[k],
                                 .depth = choice.depth});
        if (choice.donors[k] >= 0)
          work_.donors.emplace_back(job.get(), c.data[static_cast<std::size_t>(choice.donors[k])]);
      }
      for (std::size_t k = 0; k < plan.optional_outputs.size(); ++k) {
        const std::size_t output = c.outputs.size() + k;
        work_.outputs.push_back({.node = c.walk.order[plan.optional_outputs[k]],
                                 .value = {job->storages[c.data.size() + output], 0, job->event_of(output)},
                                 .job = job.get(),
                                 .keeps = true,
                                 .is_optional = true});
      }
      for (const std::uint32_t place : c.wanted) work_.passed_by.push_back(c.walk.order[place]);
      add_choice(choice, c.walk.order.size());
      scheduled_.launches.push_back({std::move(open), job, job->done});
    }
    return true;
  }

  /// A graph that crosses devices: jobs in an order in which none needs a later one.
  bool add_parts() {
    GraphKey all;
    const std::uint64_t walk = next_walk();
    for (std::size_t i = 0; i < work_.used; ++i) {
      for (Node* output : work_.captures[i].outputs) {
        if (std::exchange(output->walk, walk) != walk) all.outputs.push_back(output);
      }
    }
    InnerValues inner;
    std::unordered_map<const Node*, Job*> jobs;
    GraphKey c;
    for (const DevicePart& part : cut(all.outputs)) {
      std::shared_ptr<OpenDevice> open = open_device(part.device);
      const std::shared_ptr<Job> job = new_job();
      add_copies(*job, part, open, inner);
      for (const Node* node : part.received) jobs[node] = job.get();
      if (!part.outputs.empty()) {
        c.fill(part);
        if (!find_plan(*job, c, open)) return false;
        bind(*job, c, open, &inner, {});
        for (std::size_t k = 0; k < c.outputs.size(); ++k) {
          inner[c.outputs[k]] = {job->storages[c.data.size() + k], 0, job->event_of(k)};
          jobs[c.outputs[k]] = job.get();
        }
      }
      scheduled_.launches.push_back({std::move(open), job, job->done});
    }
    all.walk_again();
    HistoryChoice& choice = work_.choice;
    choose_histories(all, nullptr, choice);
    for (std::size_t k = 0; k < all.outputs.size(); ++k) {
      Node* node = all.outputs[k];
      work_.outputs.push_back({.node = node,
                               .value = std::move(inner.at(node)),
                               .job = jobs.at(node),
                               .keeps = choice.keeps[k],
                               .has_origins = choice.has_origins[k],
                               .depth = choice.depth});
    }
    add_choice(choice, all.walk.order.size());
    return true;
  }

  bool find_plan(Job& job, GraphKey& c, const std::shared_ptr<OpenDevice>& target) {
    const RunRecorder recorder(c);
    if (!with_optional_) c.wanted.clear();
    job.executable = plans_.find(c, target);
    if (job.executable == nullptr) return false;
    const Plan& plan = job.executable->plan();
    if (!plan.optional_outputs.empty() && !has_room_to_spare(*target, plan.peak_bytes)) {
      c.wanted.clear();
      job.executable = plans_.find(c, target);
      if (job.executable == nullptr) return false;
    }
    job.record = recorder.record(*job.executable);
    if (job.executable->may_fail()) {
      for (std::int32_t k = 0; k < job.executable->plan().output_count; ++k)
        job.output_events.push_back(std::make_shared<Event>());
    }
    return true;
  }

  /// Where the plan's inputs and outputs are, and its numbers.
  static void bind(Job& job, const GraphKey& c, const std::shared_ptr<OpenDevice>& target,
                   const InnerValues* inner, std::span<const std::int32_t> donors) {
    const Plan& plan = job.executable->plan();
    job.storages.reserve(c.data.size() + static_cast<std::size_t>(plan.output_count));
    job.bindings.slots.reserve(c.data.size() + static_cast<std::size_t>(plan.output_count));
    for (const Node* leaf : c.data) {
      const Value& value = leaf->has_value() ? leaf->value() : inner->at(leaf);
      job.storages.push_back(value.storage);
      job.bindings.slots.push_back({value.storage.get(), value.byte_offset});
      depend_on(job, *leaf, value);
    }
    for (std::size_t k = 0; k < c.outputs.size(); ++k) {
      if (!donors.empty() && donors[k] >= 0)
        job.storages.push_back(job.storages[static_cast<std::size_t>(donors[k])]);
      else
        job.storages.push_back(allocate_value(target, *c.outputs[k]));
      job.bindings.slots.push_back({job.storages.back().get(), 0});
    }
    for (const std::uint32_t node : plan.optional_outputs) {
      job.storages.push_back(allocate_value(target, *c.walk.order[node]));
      job.bindings.slots.push_back({job.storages.back().get(), 0});
    }
    job.bindings.scalars.reserve(plan.scalars.size());
    for (const Node* leaf : c.scalars) job.bindings.scalars.push_back(scalar_bits(*leaf));
    job.bindings.scalars.insert(job.bindings.scalars.end(), c.positions.begin(), c.positions.end());
    job.bindings.scalars.insert(job.bindings.scalars.end(), plan.constants.begin(), plan.constants.end());
  }

  /// The copies that bring a part what it receives; notes where they put it.
  static void add_copies(Job& job, const DevicePart& part, const std::shared_ptr<OpenDevice>& target,
                         InnerValues& inner) {
    job.copies.reserve(part.received.size());
    std::unordered_map<const Node*, StoragePtr> brought;  // what is moved twice is copied once
    for (const Node* node : part.received) {
      const Node& source = *node->inputs()[0];
      StoragePtr& to = brought[&source];
      if (to == nullptr) {
        const Value& value = source.has_value() ? source.value() : inner.at(&source);
        to = allocate_value(target, *node);
        job.copies.push_back({.from_backend = open_device(value.storage->device())->backend,
                              .from = value.storage,
                              .from_offset = static_cast<std::size_t>(value.byte_offset),
                              .to_backend = target->backend.get(),
                              .to = to,
                              .bytes = bytes_of(*node)});
        depend_on(job, source, value);
      }
      inner[node] = {to, 0, job.done};
    }
  }

  void add_choice(HistoryChoice& choice, std::size_t nodes) {
    const auto keeps = static_cast<std::size_t>(std::count(choice.keeps.begin(), choice.keeps.end(), true));
    const std::size_t share = std::max<std::size_t>(1, keeps);
    kept_nodes_ = std::max(kept_nodes_, nodes / share);
    kept_bytes_ = std::max(kept_bytes_, choice.kept_bytes / share);
    std::move(choice.ended.begin(), choice.ended.end(), std::back_inserter(work_.ended));
    std::move(choice.others.begin(), choice.others.end(), std::back_inserter(bin_));
  }

  /// Gives the outputs their values, which are on their way, and ends histories.
  void settle() {
    for (Node* node : work_.passed_by)
      node->note_passed_by();  // true of those that are given a value now, too
    std::vector<Node*>& cuts = work_.cuts;
    for (const NodePtr& node : work_.ended) cuts.push_back(node.get());
    for (const SettledOutput& output : work_.outputs) {
      if (!output.keeps && output.has_origins) cuts.push_back(output.node);
    }
    const std::vector<OriginsPtr> origins = cuts.empty() ? std::vector<OriginsPtr>() : origins_of(cuts);
    auto next = origins.begin();
    Settlement* first = scheduled_.launches.empty() ? nullptr : &scheduled_.launches[0].job->settlement;
    for (const NodePtr& node : work_.ended) first->cut(*node, *next++);
    for (const auto& [job, leaf] : work_.donors) {
      job->settlement.add_donor(*leaf);
      count_donation(bytes_of(*leaf));
    }
    for (SettledOutput& output : work_.outputs) {
      Settlement& settlement = output.job->settlement;
      settlement.add_value(*output.node, std::move(output.value));
      if (!output.keeps)
        settlement.cut(*output.node, output.has_origins ? *next++ : OriginsPtr());
      else if (output.is_optional)
        output.node->keep_optional_value();
      else if (!output.node->inputs().empty())
        output.node->keep_history(kept_nodes_, kept_bytes_, output.depth);
    }
    std::move(work_.ended.begin(), work_.ended.end(), std::back_inserter(bin_));
    work_.ended.clear();
  }

  Workspace& work_;
  PlanFinder& plans_;
  Scheduled& scheduled_;
  std::vector<NodePtr>& bin_;
  const bool with_optional_;
  bool has_totals_ = false;
  std::size_t kept_nodes_ = 0;
  std::uint64_t kept_bytes_ = 0;
};

/// Schedules everything lazy among `outputs`; the jobs are queued, not run.
Scheduled enqueue(std::span<const LazyTensor> outputs, bool run_inline) {
  const ProfileSpan span("schedule");
  Scheduled scheduled;
  PlanFinder plans;
  std::vector<NodePtr> bin;  // what nobody needs any more, released outside the mutex
  bool with_optional = true;
  for (int way = 0;;) {
    bool has_totals = false;
    try {
      const std::scoped_lock lock(graph_mutex());
      Attempt attempt(plans, scheduled, bin, with_optional);
      if (attempt.run(outputs, run_inline)) return scheduled;
      has_totals = attempt.has_totals();
    } catch (const OutOfRoom& out) {
      // What nobody asked for goes first.
      if (std::exchange(with_optional, false)) continue;
      if (way == kWaysOfMakingRoom) throw OutOfMemoryError(out.message);
      make_room(*out.device, way++);
    }
    if (!plans.has_to_make()) continue;
    try {
      plans.make();
    } catch (const Error&) {
      // Perhaps of a total, which nobody asked for.
      if (!has_totals) throw;
      with_optional = false;
    }
  }
}

/// Schedules everything lazy among `outputs`.
Scheduled schedule(std::span<const LazyTensor> outputs, bool run_inline) {
  Scheduled scheduled = enqueue(outputs, run_inline);
  // What others may wait for first, then their turn to make this thread wait.
  for (const Launch& launch : scheduled.launches) {
    if (launch.run_inline) launch.device->stream->run_inline(launch.job);
  }
  for (Launch& launch : scheduled.launches) {
    if (!launch.run_inline) launch.device->stream->advance(scheduled.launches.size());
    launch.job.reset();
  }
  return scheduled;
}

}  // namespace

DonationStats donation_stats() { return {.buffers = donated_buffers(), .bytes = donated_bytes()}; }

void eval(std::span<const LazyTensor> outputs) {
  const Scheduled scheduled = schedule(outputs, true);
  for (const auto& event : scheduled.earlier) event->wait();
  for (const Launch& launch : scheduled.launches) launch.done->wait();
}
void eval(std::initializer_list<LazyTensor> outputs) {
  eval(std::span<const LazyTensor>(outputs.begin(), outputs.size()));
}

EvalFuture eval_async(std::span<const LazyTensor> outputs) {
  try {
    return EvalFuture(schedule(outputs, false).events());
  } catch (const Error&) {
    auto failed = std::make_shared<Event>();
    failed->set(std::current_exception());
    return EvalFuture({failed});
  }
}
EvalFuture eval_async(std::initializer_list<LazyTensor> outputs) {
  return eval_async(std::span<const LazyTensor>(outputs.begin(), outputs.size()));
}

const LazyTensor& LazyTensor::eval() const {
  caldera::eval({this, 1});
  return *this;
}

EvalFuture LazyTensor::eval_async() const { return caldera::eval_async({this, 1}); }

}  // namespace caldera
