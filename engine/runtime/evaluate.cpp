// Evaluation: from the graph behind some outputs to a job on a device's stream.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "engine/compile/compile.h"
#include "engine/runtime/devices.h"
#include "engine/runtime/plan_cache.h"
#include "engine/runtime/profiler.h"
#include "engine/runtime/runtime.h"
#include "ops/ops.h"

namespace caldera {
namespace {

const OpDef kData{.name = "data", .kind = OpClass::data, .zero_gradient = true};

bool is_data(const Node& node) { return node.has_value() && !node.is_scalar_leaf(); }

/// A graph in the order in which replays bind it. Under graph_mutex().
struct Capture {
  std::vector<Node*> outputs;  // distinct, lazy
  std::vector<Node*> order;
  std::vector<Node*> data;
  std::vector<Node*> scalars;
  Hash128 hash;
};

void mix_shape(Hash128& hash, const Node& node, std::uint64_t tag) {
  hash.mix(tag | static_cast<std::uint64_t>(node.dtype()) << 8 |
           static_cast<std::uint64_t>(node.shape().rank()) << 16);
  for (std::int64_t extent : node.shape()) hash.mix(static_cast<std::uint64_t>(extent));
}

/// Two captures of equal hash have the same structure, leaf for leaf. Values of scalars and data do not
/// enter.
Capture capture(std::vector<Node*> outputs, Device device) {
  enum : std::uint64_t { kDataTag = 1, kScalarTag = 2, kNodeTag = 3 };
  Capture c;
  c.outputs = std::move(outputs);
  c.order = topological_order(c.outputs, is_data);
  c.hash.mix(static_cast<std::uint64_t>(device.kind) << 8 | device.index);
  for (Node* node : c.order) {
    if (is_data(*node)) {
      mix_shape(c.hash, *node, kDataTag);
      c.data.push_back(node);
    } else if (node->is_scalar_leaf()) {
      mix_shape(c.hash, *node, kScalarTag);
      c.scalars.push_back(node);
    } else {
      mix_shape(c.hash, *node, kNodeTag);
      c.hash.mix(static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&node->op())));
      for (std::int64_t value : node->attributes().values()) c.hash.mix(static_cast<std::uint64_t>(value));
      for (const NodePtr& input : node->inputs()) c.hash.mix(input->walk_index);
    }
  }
  for (const Node* output : c.outputs) c.hash.mix(output->walk_index);
  return c;
}

Program to_program(const Capture& c, Device device) {
  Program program;
  program.device = device;
  program.nodes.reserve(c.order.size());
  for (const Node* node : c.order) {
    Program::Node n{.op = is_data(*node) ? &kData : &node->op(),
                    .dtype = node->dtype(),
                    .shape = node->shape(),
                    .attributes = node->attributes().values(),
                    .first_input = static_cast<std::uint32_t>(program.inputs.size()),
                    .origin = static_cast<std::uint32_t>(program.nodes.size())};
    if (is_data(*node)) {
      n.slot = static_cast<std::int32_t>(program.data.size());
      program.data.push_back(static_cast<std::uint32_t>(program.nodes.size()));
    } else if (node->is_scalar_leaf()) {
      n.slot = static_cast<std::int32_t>(program.scalars.size());
      program.scalars.push_back(node->dtype());
    } else {
      n.input_count = static_cast<std::uint32_t>(node->inputs().size());
      for (const NodePtr& input : node->inputs()) program.inputs.push_back(input->walk_index);
    }
    program.nodes.push_back(n);
  }
  for (const Node* output : c.outputs) program.outputs.push_back(output->walk_index);
  return program;
}

void check_types(const Program& program, const Backend& backend) {
  for (const Program::Node& node : program.nodes) {
    // Seeds are i64 everywhere: the random kernels read them as two words.
    if (node.op->kind == OpClass::scalar || backend.supports(node.dtype)) continue;
    throw DTypeError(
        fmt::format("{}: {} does not compute with {} (shape {}); convert with astype() or use another device",
                    node.op->name, program.device.to_string(), name(node.dtype), node.shape.to_string()));
  }
}

std::shared_ptr<const Plan> make_plan(const Capture& c, Device device) {
  const ProfileSpan span("compile");
  const Program program = to_program(c, device);
  check_types(program, backend(device));
  auto plan = compile(program, {.fusion = settings().fusion});
  if (settings().verify) verify_plan(*plan);
  debug_plan(*plan);
  return plan;
}

std::shared_ptr<Executable> executable_for(const Capture& c, Device device) {
  Hash128 key = c.hash;
  key.mix(settings().fusion ? 1 : 0);
  if (settings().plan_cache) {
    if (auto found = plan_cache().find(key)) return found;
  }
  auto plan = make_plan(c, device);
  const ProfileSpan span("prepare");
  std::shared_ptr<Executable> made = backend(device).prepare(std::move(plan));
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

std::size_t bytes_of(const Node& node) {
  return static_cast<std::size_t>(node.shape().numel()) * size_of(node.dtype());
}

std::shared_ptr<Job> make_job(const Capture& c, Device device) {
  auto job = std::make_shared<Job>();
  const RunRecorder recorder(c.order, c.outputs);
  job->executable = executable_for(c, device);
  job->record = recorder.record(*job->executable);
  job->done = std::make_shared<Event>();
  Backend& target = backend(device);
  const auto bind = [&](const Value& value) {
    job->bindings.slots.push_back({value.storage.get(), value.byte_offset});
    job->storages.push_back(value.storage);
  };
  for (const Node* leaf : c.data) {
    bind(leaf->value());
    if (leaf->value().ready) job->depends.push_back(leaf->value().ready);
  }
  for (const Node* output : c.outputs)
    bind({target.allocate(std::max<std::size_t>(1, bytes_of(*output))), 0, job->done});
  for (const Node* leaf : c.scalars) job->bindings.scalars.push_back(scalar_bits(*leaf));
  // What passes have added to the scalars comes last.
  const std::vector<std::uint64_t>& constants = job->executable->plan().constants;
  job->bindings.scalars.insert(job->bindings.scalars.end(), constants.begin(), constants.end());
  return job;
}

/// Schedules everything lazy among `outputs` and collects the events to wait for.
std::vector<std::shared_ptr<Event>> schedule(std::span<const LazyTensor> outputs, bool run_inline) {
  std::vector<std::shared_ptr<Event>> events;
  std::vector<NodePtr> bin;  // inputs that nobody needs any more, released outside the mutex
  std::vector<std::pair<Stream*, std::shared_ptr<Job>>> mine;
  std::vector<Stream*> streams;
  {
    const ProfileSpan span("schedule");
    const std::scoped_lock lock(graph_mutex());
    std::vector<std::pair<Device, std::vector<Node*>>> by_device;
    const std::uint64_t walk = next_walk();
    for (const LazyTensor& output : outputs) {
      Node& node = output.node();
      if (node.has_value()) {
        if (node.value().ready) events.push_back(node.value().ready);
        continue;
      }
      if (node.walk == walk) continue;
      node.walk = walk;
      auto group = std::find_if(by_device.begin(), by_device.end(),
                                [&](const auto& entry) { return entry.first == node.device(); });
      if (group == by_device.end()) group = by_device.insert(group, {node.device(), {}});
      group->second.push_back(&node);
    }
    // All that may throw comes first: a graph is scheduled whole or not at all.
    std::vector<std::pair<Capture, std::shared_ptr<Job>>> jobs;
    for (auto& [device, nodes] : by_device) {
      Capture c = capture(std::move(nodes), device);
      std::shared_ptr<Job> job = make_job(c, device);
      jobs.emplace_back(std::move(c), std::move(job));
    }
    for (const auto& [c, job] : jobs) {
      for (std::size_t k = 0; k < c.outputs.size(); ++k) {
        c.outputs[k]->set_value({job->storages[c.data.size() + k], 0, job->done});
        c.outputs[k]->settle(bin);
      }
      events.push_back(job->done);
      Stream& stream = *open_device(c.outputs[0]->device()).stream;
      streams.push_back(&stream);
      if (stream.enqueue(job, run_inline)) mine.emplace_back(&stream, job);
    }
  }
  for (auto& [stream, job] : mine) stream->run_inline(*job);
  for (Stream* stream : streams) stream->throttle();
  return events;
}

}  // namespace

void eval(std::span<const LazyTensor> outputs) {
  for (const auto& event : schedule(outputs, true)) event->wait();
}
void eval(std::initializer_list<LazyTensor> outputs) {
  eval(std::span<const LazyTensor>(outputs.begin(), outputs.size()));
}

EvalFuture eval_async(std::span<const LazyTensor> outputs) {
  try {
    return EvalFuture(schedule(outputs, false));
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
  std::vector<Node*> nodes;
  const std::uint64_t walk = next_walk();
  for (const LazyTensor& output : outputs) {
    Node& node = output.node();
    if (node.has_value() || node.walk == walk) continue;
    node.walk = walk;
    nodes.push_back(&node);
  }
  if (nodes.empty()) return nullptr;
  const Device device = nodes[0]->device();
  return make_plan(capture(std::move(nodes), device), device);
}
std::shared_ptr<const Plan> plan_for(std::initializer_list<LazyTensor> outputs) {
  return plan_for(std::span<const LazyTensor>(outputs.begin(), outputs.size()));
}

const LazyTensor& LazyTensor::eval() const {
  caldera::eval({this, 1});
  return *this;
}

EvalFuture LazyTensor::eval_async() const { return caldera::eval_async({this, 1}); }

LazyTensor LazyTensor::detach() const {
  const Node& n = node();
  if (!n.has_value()) return stop_gradient(*this);
  LazyTensor leaf(Node::make(kData, n.shape(), n.dtype(), n.device()));
  leaf.node().set_value(n.value());
  return leaf;
}

LazyTensor LazyTensor::from_bytes(const void* data, std::size_t bytes, DType dtype, const Shape& shape,
                                  Device device) {
  std::int64_t count = 1;
  for (std::int64_t extent : shape) {
    if (extent < 0)
      throw ShapeError(fmt::format("from_bytes: shape {} has a negative extent", shape.to_string()));
    if (__builtin_mul_overflow(count, extent, &count)) {
      throw ShapeError(
          fmt::format("from_bytes: shape {} has more elements than memory can hold", shape.to_string()));
    }
  }
  const std::size_t elements = bytes / size_of(dtype);
  if (elements * size_of(dtype) != bytes || elements != static_cast<std::size_t>(count)) {
    throw ShapeError(fmt::format("from_span: {} elements of {} do not fill shape {}, which has {}", elements,
                                 name(dtype), shape.to_string(), count));
  }
  Backend& target = backend(device);
  StoragePtr storage = target.allocate(std::max<std::size_t>(1, bytes));
  if (bytes > 0) target.upload(*storage, 0, data, bytes);
  LazyTensor leaf(Node::make(kData, shape, dtype, device));
  leaf.node().set_value({std::move(storage), 0, nullptr});
  return leaf;
}

void LazyTensor::copy_to_host(void* out) const {
  eval();
  const Value& value = node().value();
  const std::size_t bytes = bytes_of(node());
  if (bytes == 0) return;
  backend(value.storage->device())
      .download(*value.storage, static_cast<std::size_t>(value.byte_offset), out, bytes);
}

template <class T>
std::vector<T> LazyTensor::to_vector() const {
  if (dtype() != dtype_of<T>()) {
    throw DTypeError(fmt::format("to_vector: the tensor is {}, not {}; convert with astype()", name(dtype()),
                                 name(dtype_of<T>())));
  }
  std::vector<T> out(static_cast<std::size_t>(numel()));
  if constexpr (std::is_same_v<T, bool>) {  // std::vector<bool> has no contiguous elements
    std::vector<std::uint8_t> bytes(out.size());
    copy_to_host(bytes.data());
    std::copy(bytes.begin(), bytes.end(), out.begin());
  } else {
    copy_to_host(out.data());
  }
  return out;
}

template std::vector<bool> LazyTensor::to_vector<bool>() const;
template std::vector<std::uint8_t> LazyTensor::to_vector<std::uint8_t>() const;
template std::vector<std::int32_t> LazyTensor::to_vector<std::int32_t>() const;
template std::vector<std::int64_t> LazyTensor::to_vector<std::int64_t>() const;
template std::vector<Half> LazyTensor::to_vector<Half>() const;
template std::vector<BFloat16> LazyTensor::to_vector<BFloat16>() const;
template std::vector<float> LazyTensor::to_vector<float>() const;
template std::vector<double> LazyTensor::to_vector<double>() const;

template <class T>
T LazyTensor::item() const {
  if (numel() != 1)
    throw ShapeError(fmt::format("item: shape {} has {} elements", shape().to_string(), numel()));
  std::array<std::byte, 8> raw{};
  copy_to_host(raw.data());
  const auto as = [&]<class E>(E element) {
    std::memcpy(&element, raw.data(), sizeof(E));
    return static_cast<T>(element);
  };
  switch (dtype()) {
    case DType::boolean:
    case DType::u8:
      return as(std::uint8_t{});
    case DType::i32:
      return as(std::int32_t{});
    case DType::i64:
      return as(std::int64_t{});
    case DType::f32:
      return as(float{});
    case DType::f64:
      return as(double{});
    case DType::f16:
      return static_cast<T>(to_float(Half{static_cast<std::uint16_t>(as(std::uint16_t{}))}));
    case DType::bf16:
      return static_cast<T>(to_float(BFloat16{static_cast<std::uint16_t>(as(std::uint16_t{}))}));
  }
  return T{};
}

template float LazyTensor::item<float>() const;
template double LazyTensor::item<double>() const;
template std::int32_t LazyTensor::item<std::int32_t>() const;
template std::int64_t LazyTensor::item<std::int64_t>() const;
template bool LazyTensor::item<bool>() const;

}  // namespace caldera
