#include "engine/jit/trace.h"

#include <fmt/core.h>

#include <algorithm>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "engine/autodiff/argument_checks.h"
#include "engine/graph/tracing/tracing.h"
#include "engine/runtime/capture/graph_key.h"
#include "engine/runtime/devices.h"
#include "engine/runtime/job_inputs.h"

namespace caldera {
namespace {

/// What the function is called with.
class StandIns {
 public:
  explicit StandIns(std::span<const LazyTensor> arguments) : start_(first_of_trace()) {
    for (const LazyTensor& argument : arguments) {
      const Node& node = argument.node();
      if (node.is_scalar_leaf()) {
        tensors_.emplace_back(numbers_.stand_in(node, static_cast<std::uint32_t>(tensors_.size())));
        continue;
      }
      tensors_.emplace_back(Node::make(kArgumentTensor, node.shape(), node.dtype(), node.device()));
      Node& stand_in = tensors_.back().node();
      stand_in.set_traced();
      positions_.emplace(&stand_in, static_cast<std::int32_t>(tensors_.size() - 1));
    }
  }

  std::span<const LazyTensor> tensors() const { return tensors_; }
  const NumberTrace& numbers() const { return numbers_; }
  /// Whether a node was there before the function was called.
  bool is_older(const Node& node) const { return node.id() < start_->id(); }
  /// Which argument the node stands for; -1: none. Of tensors.
  std::int32_t argument_of(const Node& node) const {
    const auto found = positions_.find(&node);
    return found == positions_.end() ? -1 : found->second;
  }
  std::vector<const Node*> nodes() const {
    std::vector<const Node*> nodes;
    for (const LazyTensor& tensor : tensors_) nodes.push_back(&tensor.node());
    return nodes;
  }

 private:
  /// Younger than all that there is, whichever thread made it.
  static NodePtr first_of_trace() {
    Node::start_ids();
    return Node::make(kArgumentTensor, Shape{}, DType::f32, Device::cpu());
  }

  NodePtr start_;
  NumberTrace numbers_;
  std::vector<LazyTensor> tensors_;
  std::unordered_map<const Node*, std::int32_t> positions_;
};

/// Counts the stand-ins as leaves with a value while it lives. Under graph_mutex().
class Leaves {
 public:
  explicit Leaves(const StandIns& stand_ins) : stand_ins_(stand_ins) {
    for (const LazyTensor& tensor : stand_ins_.tensors()) {
      if (!tensor.node().is_scalar_leaf()) tensor.node().set_value({});
    }
  }
  ~Leaves() {
    for (const LazyTensor& tensor : stand_ins_.tensors()) {
      if (!tensor.node().is_scalar_leaf()) tensor.node().drop_value();
    }
  }
  Leaves(const Leaves&) = delete;
  Leaves& operator=(const Leaves&) = delete;

 private:
  const StandIns& stand_ins_;
};

std::vector<Node*> nodes_of(std::span<const LazyTensor> tensors) {
  std::vector<Node*> nodes;
  nodes.reserve(tensors.size());
  for (const LazyTensor& tensor : tensors) nodes.push_back(&tensor.node());
  return nodes;
}

/// What the function captured, by how it is bound.
struct Captured {
  std::vector<LazyTensor> lazy;  // to be evaluated
  bool is_traced = false;        // by a transform that the call is inside of
};

Captured captured_by(std::span<const LazyTensor> results, const StandIns& stand_ins) {
  Captured captured;
  const bool is_inside = Tracing::depth() > 1;
  const std::scoped_lock lock(graph_mutex());
  const auto is_leaf = [&](const Node& node) {
    return node.has_value() || node.is_scalar_leaf() || stand_ins.is_older(node);
  };
  Walk walk;
  evaluation_order(nodes_of(results), is_leaf, walk);
  for (Node* node : walk.order) {
    if (is_argument_number(*node)) {
      captured.is_traced = captured.is_traced || !stand_ins.numbers().owns(*node);
    } else if (is_leaf(*node) && !node->is_scalar_leaf()) {
      captured.is_traced =
          captured.is_traced || (is_inside && node->is_traced() && stand_ins.is_older(*node));
      if (node->has_value()) continue;
      node->add_ref();
      captured.lazy.emplace_back(NodePtr(node));
    }
  }
  return captured;
}

class Recorder {
 public:
  Recorder(std::span<const LazyTensor> arguments, const StandIns& stand_ins)
      : stand_ins_(stand_ins), trace_(std::make_shared<Trace>(Signature(arguments))) {}

  /// Under graph_mutex(). What was captured has values.
  std::shared_ptr<Trace> record(std::span<const LazyTensor> results) {
    for (const std::uint32_t argument : stand_ins_.numbers().read()) {
      const Node& number = stand_ins_.tensors()[argument].node();
      trace_->fixed.push_back({argument, number.attributes()[0]});
    }
    GraphKey c;
    for (const LazyTensor& result : results) trace_->results.push_back(result_of(result.node(), c));
    trace_->asked = static_cast<std::uint32_t>(c.outputs.size());
    if (!c.outputs.empty()) capture(c);
    return std::move(trace_);
  }

 private:
  Trace::Result result_of(Node& node, GraphKey& c) const {
    const auto kept = [&] {
      node.add_ref();
      return NodePtr(&node);
    };
    if (is_argument_number(node))
      return {Trace::From::number, NumberTrace::argument_of(node), node.dtype(), {}};
    const std::int32_t argument = stand_ins_.argument_of(node);
    if (argument >= 0) return {Trace::From::argument, static_cast<std::uint32_t>(argument), {}, {}};
    if (node.is_scalar_leaf() || node.has_value()) return {Trace::From::captured, 0, {}, kept()};
    auto at = std::find(c.outputs.begin(), c.outputs.end(), &node);
    if (at == c.outputs.end()) {
      if (!c.outputs.empty()) check_device(*c.outputs.front(), node);
      at = c.outputs.insert(at, &node);
    }
    return {Trace::From::plan, static_cast<std::uint32_t>(at - c.outputs.begin()), {}, {}};
  }

  static void check_device(const Node& one, const Node& other) {
    if (one.device() == other.device()) return;
    throw ValueError(fmt::format(
        "compiled: the function computes results on {} and on {}; a compiled function computes on "
        "one device: compile the parts by themselves, or move results after the call",
        one.device().to_string(), other.device().to_string()));
  }

  void capture(GraphKey& c) {
    Trace& trace = *trace_;
    trace.device = c.device = c.outputs.front()->device();
    {
      const Leaves leaves(stand_ins_);
      c.fill();
      if (c.crosses) {
        throw ValueError(
            fmt::format("compiled: the graph of the function crosses devices (to()) on its way to {}; a "
                        "compiled function computes on one device: move arguments before the call, and "
                        "results after it",
                        c.device.to_string()));
      }
      trace.program = c.program();
      trace.nodes = c.owned_nodes();
    }
    trace.structure = c.hash;
    trace.outputs.assign(c.outputs.begin(), c.outputs.end());
    for (Node* leaf : c.data) {
      const std::int32_t argument = stand_ins_.argument_of(*leaf);
      trace.inputs.push_back({argument, argument < 0 ? leaf : nullptr});
    }
    for (const Node* number : c.scalars) {
      if (is_argument_number(*number))
        trace.numbers.push_back(
            {static_cast<std::int32_t>(NumberTrace::argument_of(*number)), number->dtype(), 0});
      else
        trace.numbers.push_back({-1, number->dtype(), scalar_bits(*number)});
    }
    for (const std::int64_t position : c.positions)
      trace.numbers.push_back({-1, DType::i64, static_cast<std::uint64_t>(position)});
    // Walks again.
    trace.origins = trace_origins({c.outputs.data(), trace.asked}, stand_ins_.nodes());
  }

  const StandIns& stand_ins_;
  std::shared_ptr<Trace> trace_;
};

}  // namespace

std::shared_ptr<const Trace> record_trace(const VectorFunction& function,
                                          std::span<const LazyTensor> arguments) {
  const Tracing tracing;
  const StandIns stand_ins(arguments);
  const std::vector<LazyTensor> results = function(stand_ins.tensors());
  check_defined(results, "compiled", "result");
  const Captured captured = captured_by(results, stand_ins);
  if (captured.is_traced) return nullptr;
  if (!captured.lazy.empty()) eval(captured.lazy);
  std::shared_ptr<Trace> trace;
  {
    const std::scoped_lock lock(graph_mutex());
    trace = Recorder(arguments, stand_ins).record(results);
  }
  if (!trace->outputs.empty()) trace->opening = open_device(trace->device)->opening;
  return trace;
}

}  // namespace caldera
