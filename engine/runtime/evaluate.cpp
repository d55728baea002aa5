// Evaluation: from the graph behind some outputs to a job on a device's stream.
#include "engine/runtime/evaluate.h"

#include <fmt/core.h>

#include <bit>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "engine/compile/compile.h"
#include "engine/device/backend.h"
#include "engine/explain/debug_print.h"
#include "engine/graph/data_leaf.h"
#include "engine/graph/lineage.h"
#include "engine/graph/lineage_walk.h"
#include "engine/plan/verify.h"
#include "engine/runtime/buffer_donation.h"
#include "engine/runtime/device_partition.h"
#include "engine/runtime/devices.h"
#include "engine/runtime/graph_key.h"
#include "engine/runtime/memory_pressure.h"
#include "engine/runtime/plan_cache.h"
#include "engine/runtime/profiler.h"
#include "engine/runtime/runtime.h"
#include "engine/tensor/dispatch.h"

namespace caldera {
namespace {

/// Operations that need tensors of host data ask the graph for them, which knows no device.
[[maybe_unused]] const bool kMakesHostLeaves = set_host_leaf_maker(&LazyTensor::from_bytes);

void check_types(const Program& program, const Backend& backend) {
  for (const Program::Node& node : program.nodes) {
    if (node.op->kind == OpClass::placeholder) {
      throw ValueError(
          fmt::format("eval: the value depends on an argument (shape {}) of a function under vmap, which is "
                      "called once for all examples and has no values to compute with; evaluate outside of "
                      "the mapped function, and use where() instead of control flow on values",
                      node.shape.to_string()));
    }
    // Seeds are i64 everywhere: the random kernels read them as two words.
    if (node.op->kind == OpClass::scalar || backend.supports(node.dtype)) continue;
    throw DTypeError(
        fmt::format("{}: {} does not compute with {} (shape {}); convert with astype() or use another device",
                    node.op->name, program.device.to_string(), name(node.dtype), node.shape.to_string()));
  }
}

CompileOptions compile_options() {
  CompileOptions options{.fusion = settings().fusion};
  const std::string& wanted = settings().debug_pass;
  if (!wanted.empty()) {
    options.after_pass = [&wanted](std::string_view pass, const std::function<std::string()>& text) {
      if (wanted == "all" || wanted == pass) fmt::print(stderr, "caldera: after {}:\n{}", pass, text());
    };
  }
  return options;
}

std::shared_ptr<const Plan> make_plan(const GraphKey& c) {
  const ProfileSpan span("compile");
  const Program program = c.program();
  check_types(program, backend(c.device));
  auto plan = compile(program, compile_options());
  if (settings().verify) verify_plan(*plan);
  print_plan(*plan, settings().debug, backend(c.device).code_writer());
  return plan;
}

std::shared_ptr<Executable> executable_for(const GraphKey& c, const OpenDevice& target) {
  const Hash128 key = plan_key(c.hash, target.opening);
  if (settings().plan_cache) {
    if (auto found = plan_cache().find(key)) return found;
  }
  auto plan = make_plan(c);
  const ProfileSpan span("prepare");
  std::shared_ptr<Executable> made = target.backend->prepare(std::move(plan));
  if (settings().plan_cache) plan_cache().insert(key, made);
  return made;
}

std::uint64_t scalar_bits(const Node& node) {
  const std::int64_t raw = node.attributes()[0];
  // Arguments of kernels are of the type that is computed in: the value that the type itself holds.
  return dispatch(node.dtype(), [&]<class T>() {
    if constexpr (sizeof(T) == 8)
      return static_cast<std::uint64_t>(raw);  // the bits of f64 too
    else if constexpr (std::is_integral_v<T>)
      return std::uint64_t{static_cast<std::uint32_t>(static_cast<T>(raw))};
    else
      return std::uint64_t{
          std::bit_cast<std::uint32_t>(to_number(to_element<T>(std::bit_cast<double>(raw))))};
  });
}

std::shared_ptr<Job> new_job() {
  auto job = std::make_shared<Job>();
  job->done = std::make_shared<Event>();
  return job;
}

void depend_on(Job& job, const Value& value) {
  const bool is_sound = value.ready == nullptr || (value.ready->is_set() && !value.ready->error());
  if (!is_sound && value.ready != job.done) job.depends.push_back(value.ready);
}

/// Values that an evaluation makes for itself while it is scheduled: what one part of a graph over several
/// devices gives to another. Their nodes stay lazy, unless they are asked for.
using InnerValues = std::unordered_map<const Node*, Value>;

/// Adds to a job what replays the plan of a capture. Throws before anything has changed.
void add_plan(Job& job, const GraphKey& c, const OpenDevice& target, const InnerValues* inner) {
  const RunRecorder recorder(c);
  job.executable = executable_for(c, target);
  const Plan& plan = job.executable->plan();
  job.record = recorder.record(*job.executable);
  job.storages.reserve(c.data.size() + c.outputs.size());
  // Before the job holds storages: what nobody but this evaluation holds may be given away. Not in a part of
  // a larger graph: the others may need it.
  std::vector<std::int32_t> donors;
  if (!plan.donations.empty() && inner == nullptr) donors = find_donors(c, plan);
  job.bindings.slots.reserve(c.data.size() + c.outputs.size());
  for (const Node* leaf : c.data) {
    const Value& value = leaf->has_value() ? leaf->value() : inner->at(leaf);
    job.storages.push_back(value.storage);
    job.bindings.slots.push_back({value.storage.get(), value.byte_offset});
    depend_on(job, value);
  }
  for (std::size_t k = 0; k < c.outputs.size(); ++k) {
    if (!donors.empty() && donors[k] >= 0) {
      job.storages.push_back(job.storages[static_cast<std::size_t>(donors[k])]);
    } else {
      job.storages.push_back(allocate_value(target, *c.outputs[k]));
    }
    job.bindings.slots.push_back({job.storages.back().get(), 0});
  }
  job.bindings.scalars.reserve(plan.scalars.size());
  for (const Node* leaf : c.scalars) job.bindings.scalars.push_back(scalar_bits(*leaf));
  job.bindings.scalars.insert(job.bindings.scalars.end(), c.positions.begin(), c.positions.end());
  job.bindings.scalars.insert(job.bindings.scalars.end(), plan.constants.begin(), plan.constants.end());
}

/// A job on its way.
struct Launch {
  std::shared_ptr<OpenDevice> device;
  std::shared_ptr<Job> job;
  std::shared_ptr<Event> done;
  bool run_inline = false;  // by the thread that scheduled it
};

/// The copies that bring a part what it receives; notes where they put it.
void add_copies(Job& job, const DevicePart& part, const OpenDevice& target, InnerValues& inner) {
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
                            .to_backend = target.backend.get(),
                            .to = to,
                            .bytes = bytes_of(*node)});
      depend_on(job, value);
    }
    inner[node] = {to, 0, job.done};
  }
}

/// Jobs for the graph of `outputs`, which crosses devices, in an order in which none needs a later one. Their
/// values are among `inner` then.
std::vector<Launch> launches_of(std::span<Node* const> outputs, InnerValues& inner) {
  std::vector<Launch> launches;
  GraphKey c;
  for (const DevicePart& part : cut(outputs)) {
    std::shared_ptr<OpenDevice> open = open_device(part.device);
    const std::shared_ptr<Job> job = new_job();
    add_copies(*job, part, *open, inner);
    if (!part.outputs.empty()) {
      c.fill(part);
      add_plan(*job, c, *open, &inner);
      for (std::size_t k = 0; k < c.outputs.size(); ++k)
        inner[c.outputs[k]] = {job->storages[c.data.size() + k], 0, job->done};
    }
    launches.push_back({std::move(open), job, job->done});
  }
  return launches;
}

/// What scheduling works with, kept from one evaluation to the next. Under graph_mutex().
struct Workspace {
  std::vector<GraphKey> captures;  // one a device, as many as there ever were at once
  std::size_t used = 0;

  GraphKey& capture_on(Device device) {
    for (std::size_t i = 0; i < used; ++i) {
      if (captures[i].device == device) return captures[i];
    }
    if (used == captures.size()) captures.emplace_back();
    captures[used].reset(device);
    return captures[used++];
  }
  /// A huge graph's lists are not worth keeping.
  void finish() {
    constexpr std::size_t kWorthKeeping = std::size_t{1} << 16;
    for (std::size_t i = 0; i < used; ++i) {
      if (captures[i].walk.order.capacity() > kWorthKeeping) captures[i] = {};
    }
    used = 0;
  }
};

Workspace& workspace() {
  static auto* instance = new Workspace;  // outlives every static tensor
  return *instance;
}

/// What an evaluation waits for.
struct Scheduled {
  std::vector<Launch> launches;
  std::vector<std::shared_ptr<Event>> earlier;  // of what other evaluations compute

  std::vector<std::shared_ptr<Event>> events() && {
    for (Launch& launch : launches) earlier.push_back(std::move(launch.done));
    return std::move(earlier);
  }
};

/// Under graph_mutex(): schedules captures of which none crosses devices.
void schedule_captures(Workspace& work, bool run_inline, Scheduled& scheduled, std::vector<NodePtr>& bin) {
  // All that may throw comes first: a graph is scheduled whole or not at all.
  scheduled.launches.reserve(work.used);
  std::size_t released = 0;
  for (std::size_t i = 0; i < work.used; ++i) {
    GraphKey& c = work.captures[i];
    if (i > 0) c.fill();  // captures share leaves that are numbers, and the walk marks them
    std::shared_ptr<OpenDevice> open = open_device(c.device);
    const std::shared_ptr<Job> job = new_job();
    add_plan(*job, c, *open, nullptr);
    scheduled.launches.push_back({std::move(open), job, job->done});
    for (const Node* output : c.outputs) released += output->inputs().size();
  }
  bin.reserve(released);
  std::vector<LineagePtr> lineages;
  for (std::size_t i = 0; i < work.used; ++i) append_lineages(work.captures[i].outputs, lineages);
  auto lineage = lineages.begin();
  for (std::size_t i = 0; i < work.used; ++i) {
    Launch& launch = scheduled.launches[i];
    const GraphKey& c = work.captures[i];
    for (std::size_t k = 0; k < c.outputs.size(); ++k) {
      c.outputs[k]->set_lineage(std::move(*lineage++));
      c.outputs[k]->set_value({launch.job->storages[c.data.size() + k], 0, launch.done});
      c.outputs[k]->release_inputs(bin);
    }
    launch.run_inline = launch.device->stream->enqueue(launch.job, run_inline);
  }
}

/// Under graph_mutex(): schedules a graph that crosses devices.
void schedule_parts(const Workspace& work, Scheduled& scheduled, std::vector<NodePtr>& bin) {
  std::vector<Node*> outputs;
  std::size_t released = 0;
  for (std::size_t i = 0; i < work.used; ++i) {
    for (Node* output : work.captures[i].outputs) {
      outputs.push_back(output);
      released += output->inputs().size();
    }
  }
  InnerValues inner;
  scheduled.launches = launches_of(outputs, inner);
  bin.reserve(released);
  std::vector<LineagePtr> lineages;
  append_lineages(outputs, lineages);
  for (std::size_t k = 0; k < outputs.size(); ++k) {
    outputs[k]->set_lineage(std::move(lineages[k]));
    outputs[k]->set_value(std::move(inner.at(outputs[k])));
    outputs[k]->release_inputs(bin);
  }
  // By the streams' own threads: one that ran them all itself would be in the way of those that wait.
  for (const Launch& launch : scheduled.launches) launch.device->stream->enqueue(launch.job, false);
}

/// Schedules everything lazy among `outputs`.
Scheduled schedule(std::span<const LazyTensor> outputs, bool run_inline) {
  Scheduled scheduled;
  std::vector<NodePtr> bin;  // inputs that nobody needs any more, released outside the mutex
  {
    const ProfileSpan span("schedule");
    const std::scoped_lock lock(graph_mutex());
    Workspace& work = workspace();
    work.used = 0;
    const std::uint64_t walk = next_walk();
    for (const LazyTensor& output : outputs) {
      Node& node = output.node();
      if (node.has_value()) {
        if (node.value().ready) scheduled.earlier.push_back(node.value().ready);
        continue;
      }
      if (node.walk == walk) continue;
      node.walk = walk;
      work.capture_on(node.device()).outputs.push_back(&node);
    }
    bool crosses = false;
    for (std::size_t i = work.used; i-- > 0;) {  // the first one's walk is the latest then
      work.captures[i].fill();
      crosses = crosses || work.captures[i].crosses;
    }
    if (crosses)
      schedule_parts(work, scheduled, bin);
    else
      schedule_captures(work, run_inline, scheduled, bin);
    work.finish();
  }
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

std::shared_ptr<const Plan> plan_for(std::span<const LazyTensor> outputs) {
  const std::scoped_lock lock(graph_mutex());
  GraphKey c;
  const std::uint64_t walk = next_walk();
  for (const LazyTensor& output : outputs) {
    Node& node = output.node();
    if (node.has_value() || node.walk == walk) continue;
    node.walk = walk;
    c.outputs.push_back(&node);
  }
  if (c.outputs.empty()) return nullptr;
  c.device = c.outputs[0]->device();
  c.fill();
  if (c.crosses) {
    throw ValueError(
        "plan_for: the graph crosses devices, so it has a plan for each part; ask for the tensors that to() "
        "moves, one by one, or record an evaluation with Profiler");
  }
  return make_plan(c);
}
std::shared_ptr<const Plan> plan_for(std::initializer_list<LazyTensor> outputs) {
  return plan_for(std::span<const LazyTensor>(outputs.begin(), outputs.size()));
}

const LazyTensor& LazyTensor::eval() const {
  caldera::eval({this, 1});
  return *this;
}

EvalFuture LazyTensor::eval_async() const { return caldera::eval_async({this, 1}); }

}  // namespace caldera
