// Evaluation: from the graph behind some outputs to a job on a device's stream.
#include <fmt/core.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "engine/compile/compile.h"
#include "engine/runtime/capture.h"
#include "engine/runtime/devices.h"
#include "engine/runtime/donate.h"
#include "engine/runtime/plan_cache.h"
#include "engine/runtime/profiler.h"
#include "engine/runtime/runtime.h"

namespace caldera {
namespace {

void check_types(const Program& program, const Backend& backend) {
  for (const Program::Node& node : program.nodes) {
    // Seeds are i64 everywhere: the random kernels read them as two words.
    if (node.op->kind == OpClass::scalar || backend.supports(node.dtype)) continue;
    throw DTypeError(
        fmt::format("{}: {} does not compute with {} (shape {}); convert with astype() or use another device",
                    node.op->name, program.device.to_string(), name(node.dtype), node.shape.to_string()));
  }
}

std::shared_ptr<const Plan> make_plan(const Capture& c) {
  const ProfileSpan span("compile");
  const Program program = c.program();
  check_types(program, backend(c.device));
  auto plan = compile(program, {.fusion = settings().fusion});
  if (settings().verify) verify_plan(*plan);
  debug_plan(*plan);
  return plan;
}

std::shared_ptr<Executable> executable_for(const Capture& c, const OpenDevice& target) {
  Hash128 key = c.hash;
  key.mix(settings().fusion ? 1 : 0);
  key.mix(target.opening);
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
  switch (node.dtype()) {
    case DType::f32:
      return std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(raw)));
    case DType::f16:
      return to_half(static_cast<float>(std::bit_cast<double>(raw))).bits;
    case DType::bf16:
      return to_bfloat16(static_cast<float>(std::bit_cast<double>(raw))).bits;
    case DType::i32:
      return static_cast<std::uint32_t>(raw);
    case DType::u8:
      return static_cast<std::uint8_t>(raw);
    case DType::boolean:
      return raw != 0 ? 1 : 0;
    case DType::f64:
    case DType::i64:
      break;
  }
  return static_cast<std::uint64_t>(raw);
}

/// A job that replays the plan of a capture. Throws before anything has changed.
std::shared_ptr<Job> make_job(const Capture& c, const OpenDevice& target) {
  auto job = std::make_shared<Job>();
  const RunRecorder recorder(c.walk.order, c.outputs);
  job->executable = executable_for(c, target);
  const Plan& plan = job->executable->plan();
  job->record = recorder.record(*job->executable);
  job->done = std::make_shared<Event>();
  job->storages.reserve(c.data.size() + c.outputs.size());
  // Before the job holds storages: what nobody but this evaluation holds may be given away.
  std::vector<std::int32_t> donors;
  if (!plan.donations.empty()) donors = find_donors(c, plan);
  for (const Node* leaf : c.data) {
    const Value& value = leaf->value();
    job->storages.push_back(value.storage);
    const bool is_sound = value.ready == nullptr || (value.ready->is_set() && !value.ready->error());
    if (!is_sound) job->depends.push_back(value.ready);
  }
  for (std::size_t k = 0; k < c.outputs.size(); ++k) {
    if (!donors.empty() && donors[k] >= 0) {
      job->storages.push_back(job->storages[static_cast<std::size_t>(donors[k])]);
    } else {
      job->storages.push_back(target.backend->allocate(std::max<std::size_t>(1, bytes_of(*c.outputs[k]))));
    }
  }
  job->bindings.slots.reserve(job->storages.size());
  for (const StoragePtr& storage : job->storages) job->bindings.slots.push_back({storage.get(), 0});
  for (std::size_t k = 0; k < c.data.size(); ++k) {
    job->bindings.slots[k].byte_offset = c.data[k]->value().byte_offset;
  }
  job->bindings.scalars.reserve(plan.scalars.size());
  for (const Node* leaf : c.scalars) job->bindings.scalars.push_back(scalar_bits(*leaf));
  job->bindings.scalars.insert(job->bindings.scalars.end(), plan.constants.begin(), plan.constants.end());
  return job;
}

/// A job on its way.
struct Launch {
  std::shared_ptr<OpenDevice> device;
  std::shared_ptr<Job> job;
  std::shared_ptr<Event> done;
  bool run_inline = false;  // by the thread that scheduled it
};

/// What scheduling works with, kept from one evaluation to the next. Under graph_mutex().
struct Workspace {
  std::vector<Capture> captures;  // one a device, as many as there ever were at once
  std::size_t used = 0;

  Capture& capture_on(Device device) {
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
    // All that may throw comes first: a graph is scheduled whole or not at all.
    scheduled.launches.reserve(work.used);
    std::size_t released = 0;
    for (std::size_t i = 0; i < work.used; ++i) {
      Capture& c = work.captures[i];
      c.fill();
      std::shared_ptr<OpenDevice> open = open_device(c.device);
      std::shared_ptr<Job> job = make_job(c, *open);
      scheduled.launches.push_back({std::move(open), job, job->done});
      for (const Node* output : c.outputs) released += output->inputs().size();
    }
    bin.reserve(released);
    for (std::size_t i = 0; i < work.used; ++i) {
      Launch& launch = scheduled.launches[i];
      const Capture& c = work.captures[i];
      for (std::size_t k = 0; k < c.outputs.size(); ++k) {
        c.outputs[k]->set_value({launch.job->storages[c.data.size() + k], 0, launch.done});
        c.outputs[k]->settle(bin);
      }
      launch.run_inline = launch.device->stream->enqueue(launch.job, run_inline);
    }
    work.finish();
  }
  for (Launch& launch : scheduled.launches) {
    if (launch.run_inline)
      launch.device->stream->run_inline(launch.job);
    else
      launch.device->stream->advance();
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
  Capture c;
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
