#include "engine/jit/replay.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <utility>

#include "engine/base/error.h"
#include "engine/graph/data_leaf.h"
#include "engine/graph/tracing/tracing.h"
#include "engine/runtime/capture/donation_stats.h"
#include "engine/runtime/capture/graph_key.h"
#include "engine/runtime/job.h"
#include "engine/runtime/job_inputs.h"
#include "engine/runtime/memory_pressure.h"
#include "engine/runtime/plan_finder.h"
#include "engine/runtime/profile_hooks.h"
#include "ops/core/node_builder.h"

namespace caldera {
namespace {

/// What asking for a tensor gives that was given away.
const std::shared_ptr<Event>& given_away() {
  static const auto* event = [] {
    auto given = std::make_shared<Event>();
    given->set(std::make_exception_ptr(ValueError(
        "the tensor was given to a compiled function (donate), and a result has taken its memory; use that "
        "result, or hold a second handle during the call to keep the tensor")));
    return new std::shared_ptr<Event>(std::move(given));  // outlives every static tensor
  }();
  return *event;
}

/// A call on its way to a job.
class Replay {
 public:
  Replay(const Trace& trace, std::span<const LazyTensor> arguments, const std::vector<bool>& may_give,
         const std::shared_ptr<OpenDevice>& device)
      : trace_(trace), may_give_(may_give), device_(device) {
    arguments_.reserve(arguments.size());
    for (const LazyTensor& argument : arguments) arguments_.push_back(&argument.node());
  }

  /// The values of the plan's first outputs, which are on their way; false: an argument has none.
  bool run(std::vector<LazyTensor>& outputs) {
    const RunRecorder recorder(trace_.program, trace_.nodes);
    executable_ = find_executable(trace_.structure, trace_.program, *device_);
    record_ = recorder.record(*executable_);
    for (int way = 0;;) {
      try {
        if (!schedule(outputs)) return false;
        break;
      } catch (const OutOfRoom& out) {
        if (way == kWaysOfMakingRoom) throw OutOfMemoryError(out.message);
        make_room(*out.device, way++);
      }
    }
    Stream& stream = *device_->stream;
    if (run_inline_)
      stream.run_inline(job_);
    else
      stream.advance();
    const std::shared_ptr<Event> done = job_->done;
    job_.reset();
    if (!device_->backend->runs_ahead()) done->wait();
    return true;
  }

 private:
  /// All that may throw comes before anything has changed.
  bool schedule(std::vector<LazyTensor>& outputs) {
    const std::scoped_lock lock(graph_mutex());
    for (const Node* argument : arguments_) {
      if (!argument->has_value() && !argument->is_scalar_leaf()) return false;
    }
    for (const Trace::Input& input : trace_.inputs) {
      if (input.captured != nullptr && !input.captured->has_value()) return false;
    }
    job_ = new_job();
    job_->executable = executable_;
    job_->record = record_;
    if (executable_->may_fail()) {
      for (std::size_t k = 0; k < trace_.outputs.size(); ++k)
        job_->output_events.push_back(std::make_shared<Event>());
    }
    choose_donors();
    bind_inputs();
    bind_outputs();
    bind_numbers();
    make_results(outputs);
    for (const std::int32_t donor : donors_) {
      if (donor < 0) continue;
      Node& node = *arguments_[static_cast<std::size_t>(donor)];
      job_->settlement.give_away(node, given_away());
      count_donation(bytes_of(node));
    }
    RunRecorder::add(job_->record);
    run_inline_ = device_->stream->enqueue(job_, !device_->backend->runs_ahead());
    return true;
  }

  /// For each output the argument whose memory it takes, or -1; empty if there are none.
  void choose_donors() {
    donors_.clear();
    is_given_.clear();
    const Plan& plan = executable_->plan();
    if (may_give_.empty() || executable_->may_fail()) return;
    for (const Donation& donation : plan.donations) {
      const std::int32_t argument = trace_.inputs[static_cast<std::size_t>(donation.input)].argument;
      if (argument < 0 || !may_give_[static_cast<std::size_t>(argument)]) continue;
      const auto output = static_cast<std::size_t>(donation.output - plan.input_count);
      donors_.resize(trace_.outputs.size(), -1);
      is_given_.resize(arguments_.size(), false);
      if (donors_[output] >= 0 || is_given_[static_cast<std::size_t>(argument)]) continue;
      // The caller's handle is the one owner of the node, and the node that of its memory.
      const Node& node = *arguments_[static_cast<std::size_t>(argument)];
      const Value& value = node.value();
      const bool fits = value.byte_offset == 0 && value.storage->bytes() == bytes_of(*trace_.outputs[output]);
      if (node.ref_count() != 1 || !fits || value.storage.use_count() != 1) continue;
      donors_[output] = argument;
      is_given_[static_cast<std::size_t>(argument)] = true;
    }
    // use_count() orders nothing: what former owners of the storage did with it comes before the job.
    std::atomic_thread_fence(std::memory_order_acquire);
  }

  void bind_inputs() {
    const std::size_t slots = trace_.inputs.size() + trace_.outputs.size();
    job_->storages.reserve(slots);
    job_->bindings.slots.reserve(slots);
    for (const Trace::Input& input : trace_.inputs) {
      const Node& leaf =
          input.argument < 0 ? *input.captured : *arguments_[static_cast<std::size_t>(input.argument)];
      const Value& value = leaf.value();
      job_->storages.push_back(value.storage);
      job_->bindings.slots.push_back({value.storage.get(), value.byte_offset});
      depend_on(*job_, leaf, value);
    }
  }

  void bind_outputs() {
    for (std::size_t k = 0; k < trace_.outputs.size(); ++k) {
      const bool is_given = !donors_.empty() && donors_[k] >= 0;
      job_->storages.push_back(is_given ? arguments_[static_cast<std::size_t>(donors_[k])]->value().storage
                                        : allocate_value(device_, *trace_.outputs[k]));
      job_->bindings.slots.push_back({job_->storages.back().get(), 0});
    }
  }

  void bind_numbers() {
    const Plan& plan = executable_->plan();
    std::vector<std::uint64_t>& scalars = job_->bindings.scalars;
    scalars.reserve(plan.scalars.size());
    for (const Trace::Number& number : trace_.numbers) {
      if (number.argument < 0) {
        scalars.push_back(number.bits);
        continue;
      }
      const Node& given = *arguments_[static_cast<std::size_t>(number.argument)];
      const bool is_same = given.dtype() == number.dtype;
      scalars.push_back(scalar_bits(
          is_same ? given.attributes()[0] : value_of_number(given).bits(number.dtype), number.dtype));
    }
    scalars.insert(scalars.end(), plan.constants.begin(), plan.constants.end());
  }

  void make_results(std::vector<LazyTensor>& outputs) {
    outputs.clear();
    outputs.reserve(trace_.asked);
    // Results are younger than the arguments, which other threads may have made.
    std::uint64_t youngest = 0;
    for (const Node* argument : arguments_) youngest = std::max(youngest, argument->id());
    Node::start_ids(youngest);
    CallOrigins call(arguments_, is_given_);
    std::vector<OriginsPtr> origins;
    origins.reserve(trace_.origins.groups.size());
    for (const ResultOrigins& group : trace_.origins.groups) origins.push_back(call.of(group));
    std::vector<NodePtr> none;
    for (std::size_t k = 0; k < trace_.asked; ++k) {
      const Node& like = *trace_.outputs[k];
      const std::int32_t group = trace_.origins.group_of[k];
      Value value{job_->storages[trace_.inputs.size() + k], 0, job_->event_of(k)};
      outputs.push_back(data_leaf(like.shape(), like.dtype(), trace_.device, std::move(value),
                                  group < 0 ? kComputedOp : kCompiledOp));
      if (group >= 0) outputs.back().node().cut(origins[static_cast<std::size_t>(group)], none);
    }
  }

  const Trace& trace_;
  const std::vector<bool>& may_give_;
  const std::shared_ptr<OpenDevice>& device_;
  std::vector<Node*> arguments_;
  std::shared_ptr<Executable> executable_;
  std::shared_ptr<RunRecord> record_;
  std::shared_ptr<Job> job_;
  std::vector<std::int32_t> donors_;
  std::vector<bool> is_given_;  // of each argument, where there are donors
  bool run_inline_ = false;
};

LazyTensor number_in(const Node& number, const LazyTensor& given, DType dtype) {
  if (number.dtype() == dtype) return given;
  return ops::scalar(value_of_number(number), dtype);
}

}  // namespace

bool holds_numbers(const Trace& trace, std::span<const LazyTensor> arguments) {
  return std::all_of(trace.numbers.begin(), trace.numbers.end(), [&](const Trace::Number& number) {
    return number.argument < 0 || !is_integral(number.dtype) ||
           value_of_number(arguments[static_cast<std::size_t>(number.argument)].node()).fits(number.dtype);
  });
}

std::optional<std::vector<LazyTensor>> replay(const Trace& trace, std::span<const LazyTensor> arguments,
                                              const std::vector<bool>& may_give,
                                              const std::shared_ptr<OpenDevice>& device) {
  std::vector<LazyTensor> results(trace.results.size());
  // Arguments that are results come first: they are not given away then.
  for (std::size_t k = 0; k < results.size(); ++k) {
    const Trace::Result& result = trace.results[k];
    if (result.from == Trace::From::captured)
      results[k] = LazyTensor(result.captured);
    else if (result.from == Trace::From::argument)
      results[k] = arguments[result.index];
    else if (result.from == Trace::From::number)
      results[k] = number_in(arguments[result.index].node(), arguments[result.index], result.dtype);
  }
  if (trace.outputs.empty()) return results;
  std::vector<LazyTensor> outputs;
  if (!Replay(trace, arguments, may_give, device).run(outputs)) return std::nullopt;
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (trace.results[k].from == Trace::From::plan) results[k] = outputs[trace.results[k].index];
  }
  return results;
}

}  // namespace caldera
