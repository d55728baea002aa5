// Node: one vertex of the computation DAG. Immutable but for its value slot.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "engine/graph/lineage.h"
#include "engine/graph/op.h"
#include "engine/tensor/device.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"
#include "engine/tensor/storage.h"

namespace caldera {

class CallRule;
class Node;
struct Trace;

/// Owning pointer to a Node (intrusive count). Dropping the last owner of a long chain does not recurse.
class NodePtr {
 public:
  NodePtr() = default;
  explicit NodePtr(Node* adopted) : node_(adopted) {}
  NodePtr(const NodePtr& other);
  NodePtr(NodePtr&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  NodePtr& operator=(NodePtr other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~NodePtr();

  Node* get() const { return node_; }
  Node* operator->() const { return node_; }
  Node& operator*() const { return *node_; }
  explicit operator bool() const { return node_ != nullptr; }
  Node* release() { return std::exchange(node_, nullptr); }

 private:
  Node* node_ = nullptr;
};

/// Completion of a piece of asynchronous work. Set once. Any thread may wait.
class Event {
 public:
  bool is_set() const { return state_.load(std::memory_order_acquire) != 0; }
  /// The error the work ended with, or null. Valid once set.
  const std::exception_ptr& error() const { return error_; }
  /// Blocks until set. Rethrows the error, if any.
  void wait() const;
  void set(std::exception_ptr error = nullptr);

 private:
  std::atomic<std::uint32_t> state_{0};
  std::exception_ptr error_;
};

/// Where a node's value lies (dense, row-major), and when it will be there. `ready` is null for values that
/// always were.
struct Value {
  StoragePtr storage;
  std::int64_t byte_offset = 0;
  std::shared_ptr<Event> ready;
};

/// Attributes of an operation: a short list of integers whose meaning OpClass defines. Real numbers are kept
/// by their bits. A view of what the node owns.
class Attributes {
 public:
  explicit Attributes(std::span<const std::int64_t> values) : values_(values) {}
  std::span<const std::int64_t> values() const { return values_; }
  std::int64_t operator[](std::size_t i) const { return values_[i]; }

 private:
  std::span<const std::int64_t> values_;
};

class Node {
 public:
  /// Shares `inputs` with their owners. One block of memory holds all of a node: graphs are built in loops.
  /// Calls are made by make_call.
  static NodePtr make(const OpDef& op, const Shape& shape, DType dtype, Device device,
                      std::span<Node* const> inputs = {}, std::span<const std::int64_t> attributes = {});
  /// Makes a call (OpClass::call), which `rule` differentiates and maps. It has no value, and is of use as
  /// the second input of the nodes that name its results (engine/autodiff/opaque_call.h).
  static NodePtr make_call(const OpDef& op, std::shared_ptr<const CallRule> rule,
                           std::span<Node* const> inputs, std::span<const std::int64_t> attributes);
  /// Makes a node of the same operation on other inputs of the same number and shapes. A call keeps its rule.
  NodePtr with_inputs(std::span<Node* const> inputs) const;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const OpDef& op() const { return *op_; }
  const Shape& shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  Attributes attributes() const { return Attributes({tail<const std::int64_t>(0), attribute_count_}); }
  /// Unique in the process, increasing with creation: a node's id is larger than those of its inputs.
  std::uint64_t id() const { return id_; }
  /// Scalar leaves fit every device.
  bool is_scalar_leaf() const { return op_->kind == OpClass::scalar; }
  bool is_call() const { return op_->kind == OpClass::call; }
  /// The rule of a call.
  const std::shared_ptr<const CallRule>& call_rule() const { return *owned_rule(); }

  /// Read only while holding graph_mutex(): evaluation drops the inputs of a node once its value is
  /// scheduled.
  std::span<const NodePtr> inputs() const {
    return {tail<const NodePtr>(attribute_count_ * sizeof(std::int64_t)), input_count_};
  }
  /// The inputs that the value is computed from: of an identity, the first. Its others are for
  /// differentiation (the call whose result it names, for one). Evaluation follows operands alone.
  std::span<const NodePtr> operands() const {
    const auto all = inputs();
    return op_->kind == OpClass::identity && !all.empty() ? all.first(1) : all;
  }

  /// The value slot. `has_value()` is true from the moment evaluation is scheduled; `value()` is constant
  /// from then on.
  bool has_value() const { return has_value_.load(std::memory_order_acquire); }
  const Value& value() const { return value_; }
  /// Once, under graph_mutex() or before the node is shared.
  void set_value(Value value);
  /// The value was computed from inputs that have been dropped: differentiation cannot pass through.
  bool is_detached() const { return detached_.load(std::memory_order_relaxed); }
  /// Where the value came from. Null until it is scheduled, and for values that always were.
  const Lineage* lineage() const { return lineage_.get(); }
  /// Under graph_mutex(), before set_value.
  void set_lineage(LineagePtr lineage) { lineage_ = std::move(lineage); }
  /// Keeps its inputs when evaluated: it was built from an argument of a function under differentiation.
  bool is_traced() const;
  /// Before the node is shared.
  void set_trace(std::shared_ptr<Trace> trace) { trace_ = std::move(trace); }
  /// Under graph_mutex(), after set_value: drops the inputs (to `bin`, to be released after the mutex), or
  /// leaves that to the end of the trace.
  void release_inputs(std::vector<NodePtr>& bin);
  /// Under graph_mutex(). Moves the inputs to `bin`, to be released after the mutex.
  void detach_inputs(std::vector<NodePtr>& bin);

  void add_ref() { refs_.fetch_add(1, std::memory_order_relaxed); }
  static void drop_ref(Node* node) {
    if (node->drop_ref()) destroy(node);
  }
  /// What was done by owners that have gone since is visible to the caller.
  std::uint32_t ref_count() const { return refs_.load(std::memory_order_acquire); }

  /// Scratch of a graph walk, under graph_mutex(): the walk's number and the node's position in it.
  mutable std::uint64_t walk = 0;
  mutable std::uint32_t walk_index = 0;

 private:
  /// True if that was the last. The only owner need not count down: nobody is left to count with.
  bool drop_ref() {
    return refs_.load(std::memory_order_acquire) == 1 || refs_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  static void destroy(Node* node);

  Node(const OpDef& op, const Shape& shape, DType dtype, Device device, std::span<Node* const> inputs,
       std::span<const std::int64_t> attributes);
  ~Node() = default;

  /// Behind the node, in the same block, lie its attributes, its inputs and, of a call, its rule.
  template <class T>
  T* tail(std::size_t offset) const {
    auto* start = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(this + 1));
    return reinterpret_cast<T*>(start + offset);
  }
  NodePtr* owned_inputs() { return tail<NodePtr>(attribute_count_ * sizeof(std::int64_t)); }
  /// Calls have no values, so they never drop their inputs: the place stays where it is.
  std::shared_ptr<const CallRule>* owned_rule() const {
    return tail<std::shared_ptr<const CallRule>>(attribute_count_ * sizeof(std::int64_t) +
                                                 input_count_ * sizeof(NodePtr));
  }

  std::atomic<std::uint32_t> refs_{1};
  std::uint32_t input_count_;
  std::uint32_t attribute_count_;
  std::atomic<bool> has_value_{false};
  std::atomic<bool> detached_{false};
  DType dtype_;
  Device device_;
  const OpDef* op_;
  std::uint64_t id_;
  Shape shape_;
  std::shared_ptr<Trace> trace_;
  LineagePtr lineage_;
  Value value_;
};

/// Guards the edges of every graph: walks hold it, and so does evaluation while it schedules. Building nodes
/// does not.
std::mutex& graph_mutex();

/// Ends the trace: from here on its nodes drop their inputs when evaluated, and those that were evaluated
/// drop them now. Without this, a parameter updated from traced gradients would keep every earlier step
/// alive.
void end_trace(Trace& trace);

/// A fresh number for Node::walk. Under graph_mutex().
std::uint64_t next_walk();

/// What a walk over a graph works with. Kept from one walk to the next, it saves allocations.
struct Walk {
  std::vector<Node*> order;
  std::vector<std::pair<Node*, std::uint32_t>> stack;
};

/// Everything reachable from `outputs` through inputs_of(node) in topological order (inputs first), each node
/// once, in walk.order. Stops at nodes for which `stop(node)` is true (they are included). Iterative. Caller
/// holds graph_mutex(). Sets walk and walk_index of the nodes.
template <class InputsOf, class Stop>
void walk_graph(std::span<Node* const> outputs, InputsOf inputs_of, Stop stop, Walk& into) {
  const std::uint64_t walk = next_walk();
  constexpr std::uint32_t kOpen = 0xffffffffU;
  auto& [order, stack] = into;
  order.clear();
  stack.clear();
  for (Node* output : outputs) {
    if (output->walk == walk) continue;
    output->walk = walk;
    output->walk_index = kOpen;
    stack.emplace_back(output, 0);
    while (!stack.empty()) {
      auto& [node, next] = stack.back();
      const std::span<const NodePtr> inputs = inputs_of(*node);
      if (next == 0 && stop(*node)) next = static_cast<std::uint32_t>(inputs.size());
      if (next < inputs.size()) {
        Node* input = inputs[next++].get();
        if (input->walk != walk) {
          input->walk = walk;
          input->walk_index = kOpen;
          stack.emplace_back(input, 0);
        }
        continue;
      }
      node->walk_index = static_cast<std::uint32_t>(order.size());
      order.push_back(node);
      stack.pop_back();
    }
  }
}

/// Walks through all inputs, as transforms and views do.
template <class Stop>
std::vector<Node*> topological_order(std::span<Node* const> outputs, Stop stop) {
  Walk walk;
  walk_graph(
      outputs, [](const Node& node) { return node.inputs(); }, stop, walk);
  return std::move(walk.order);
}
/// Walks through operands, as evaluation does. It meets no call.
template <class Stop>
void evaluation_order(std::span<Node* const> outputs, Stop stop, Walk& into) {
  walk_graph(
      outputs, [](const Node& node) { return node.operands(); }, stop, into);
}

inline NodePtr::NodePtr(const NodePtr& other) : node_(other.node_) {
  if (node_ != nullptr) node_->add_ref();
}
inline NodePtr::~NodePtr() {
  if (node_ != nullptr) Node::drop_ref(node_);
}

}  // namespace caldera
