// Node: one vertex of the computation DAG. Immutable but for its value, and the inputs that it may let go of.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/base/small_memory.h"
#include "engine/graph/event.h"
#include "engine/graph/history/kept_history.h"
#include "engine/graph/history/lazy_scalars.h"
#include "engine/graph/history/origins.h"
#include "engine/graph/op.h"
#include "engine/tensor/device.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/interned_shape.h"
#include "engine/tensor/storage.h"

namespace caldera {

class CallRule;
class Node;
struct ControlFlow;

/// Owning pointer to a Node (intrusive count), as nodes have to their inputs. Dropping the last owner of a
/// long chain does not recurse.
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

/// Owning pointer of a program to a Node: what LazyTensor is made of. A node with such an owner is *held*.
/// What is held has a value once it has been computed, whatever it was computed for (eval), and may be
/// differentiated with respect to.
class NodeHandle {
 public:
  NodeHandle() = default;
  explicit NodeHandle(NodePtr node);
  NodeHandle(const NodeHandle& other);
  NodeHandle(NodeHandle&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  NodeHandle& operator=(NodeHandle other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~NodeHandle();

  Node* get() const { return node_; }
  Node* operator->() const { return node_; }
  Node& operator*() const { return *node_; }
  explicit operator bool() const { return node_ != nullptr; }

 private:
  Node* node_ = nullptr;
};

/// Says where a node's value is stored (dense, row-major), and when it will be there. `ready` is null for
/// values that always were.
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
  static NodePtr make(const OpDef& op, const InternedShape& shape, DType dtype, Device device,
                      std::span<Node* const> inputs = {}, std::span<const std::int64_t> attributes = {});
  /// Makes a node of two inputs, which most nodes have.
  static NodePtr make(const OpDef& op, const InternedShape& shape, DType dtype, Device device, Node& a,
                      Node& b);
  static NodePtr make(const OpDef& op, const Shape& shape, DType dtype, Device device,
                      std::span<Node* const> inputs = {}, std::span<const std::int64_t> attributes = {}) {
    return make(op, InternedShape(shape), dtype, device, inputs, attributes);
  }
  /// Makes a call (OpClass::call), which `rule` differentiates and maps. It has no value, and is of use as
  /// the second input of the nodes that name its results (engine/autodiff/opaque_call.h).
  static NodePtr make_call(const OpDef& op, std::shared_ptr<const CallRule> rule,
                           std::span<Node* const> inputs, std::span<const std::int64_t> attributes);
  /// Makes a node of OpClass::control that runs the programs of `flow`.
  static NodePtr make_control(const OpDef& op, const InternedShape& shape, DType dtype, Device device,
                              std::shared_ptr<const ControlFlow> flow, std::span<Node* const> inputs,
                              std::span<const std::int64_t> attributes);
  /// Makes a node of the same operation on other inputs of the same number and shapes. A call keeps its rule,
  /// and a loop or branch its programs.
  NodePtr with_inputs(std::span<Node* const> inputs) const;
  /// The nodes that this thread makes from here on have larger ids than all that there are; than `above`.
  static void start_ids();
  static void start_ids(std::uint64_t above);
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const OpDef& op() const { return *op_; }
  OpClass kind() const { return kind_; }  // the operation's
  const Shape& shape() const { return shape_.get(); }
  const InternedShape& interned_shape() const { return shape_; }
  DType dtype() const { return dtype_; }
  Device device() const { return device_; }
  Attributes attributes() const {
    const std::size_t hidden = kind_ == OpClass::control ? kFlowWords : 0;
    return Attributes({tail<const std::int64_t>(0), attribute_count_ - hidden});
  }
  /// Unique in the process, and larger than those of the node's inputs. Nodes that one thread makes have
  /// rising ids; those of another may be older or younger, unless start_ids() came between.
  std::uint64_t id() const { return id_; }
  /// Scalar leaves fit every device.
  bool is_scalar_leaf() const { return kind_ == OpClass::scalar; }
  bool is_call() const { return kind_ == OpClass::call; }
  /// The rule of a call.
  const std::shared_ptr<const CallRule>& call_rule() const { return *owned_rule(); }
  /// The programs of a node of OpClass::control.
  const std::shared_ptr<const ControlFlow>& control_flow() const { return *owned_flow(); }

  /// Read only while holding graph_mutex(): a node that has a value may let go of its inputs (is_cut).
  std::span<const NodePtr> inputs() const {
    return {tail<const NodePtr>(attribute_count_ * sizeof(std::int64_t)), input_count_};
  }
  /// The inputs that the value is computed from: of an identity, the first. Its others are for
  /// differentiation (the call whose result it names, for one). Evaluation follows operands alone.
  std::span<const NodePtr> operands() const {
    const auto all = inputs();
    return kind_ == OpClass::identity && !all.empty() ? all.first(1) : all;
  }

  /// True from the moment evaluation is scheduled; false again if it fails.
  bool has_value() const { return has_value_.load(std::memory_order_acquire); }
  /// Returns the value of a node that has one. Call it under graph_mutex(), or where nothing can take the
  /// value away: before the node is shared, or once the value is there and the caller holds the node.
  const Value& value() const { return result_->value; }
  /// Under graph_mutex() or before the node is shared.
  void set_value(Value value);
  /// Makes the node lazy again. Under graph_mutex().
  void drop_value();
  /// Under graph_mutex(): lets go of the event of a value that is there.
  void forget_event() const { result_->value.ready = nullptr; }

  /// The value was computed from inputs that it has let go of: differentiation cannot pass through it.
  bool is_cut() const { return is_cut_.load(std::memory_order_relaxed); }
  /// Under graph_mutex(), of a node with a value that is no leaf: moves its inputs to the end of `to`, and
  /// keeps instead what they came from (engine/graph/history/origins.h).
  void cut(OriginsPtr origins, std::vector<NodePtr>& to);
  /// Under graph_mutex(): takes back what cut() gave away.
  void mend(std::span<NodePtr> inputs);
  /// Returns what a value that was cut came from; null if from nothing that anybody held.
  const OriginsPtr& origins() const { return result_->origins; }
  /// The name under which others remember to have come from this node. Under graph_mutex(). Null: nobody
  /// does.
  const OriginTagPtr& origin_tag() const { return tag_; }
  const OriginTagPtr& make_origin_tag();

  /// A job that has been scheduled is yet to compute the value, and owns the node meanwhile. Set under
  /// graph_mutex(); cleared by the job before it lets the node go.
  bool is_pending() const { return pending_.load(std::memory_order_acquire); }
  void set_pending(bool pending) { pending_.store(pending, std::memory_order_release); }

  /// It was built from an argument of a function under differentiation.
  bool is_traced() const { return is_traced_; }
  /// Before the node is shared.
  void set_traced() { is_traced_ = true; }

  /// Under graph_mutex(), of a node with a value and inputs: keeps them, as the youngest history. `nodes` and
  /// `bytes` say how much that is, and `depth` how many values it leads through that were evaluated one after
  /// the other, each computed from the one before.
  void keep_history(std::size_t nodes, std::uint64_t bytes, std::uint32_t depth);
  std::uint32_t history_depth() const { return result_ != nullptr ? result_->depth : 0; }
  /// Its value was computed by an evaluation while somebody held it, and was not kept. Under graph_mutex().
  bool was_passed_by() const { return was_passed_by_; }
  void note_passed_by() { was_passed_by_ = true; }
  /// Keeps a value that was not requested: when nobody holds it any longer, it may go (drop_loose_values).
  void keep_optional_value();
  /// Under graph_mutex(): whether the value was not asked for, and keeps its history.
  bool is_optional_value() const { return result_ != nullptr && result_->kept && result_->kept->is_optional; }
  /// Whether it has kept one, though it may have been cut since.
  bool has_kept_history() const { return is_kept_.load(std::memory_order_relaxed); }

  void add_ref() { owners_.fetch_add(kOwner, std::memory_order_relaxed); }
  /// add_ref of one that the caller does not own, but knows not to be gone: false if it is about to go.
  bool add_ref_if_owned();
  static void drop_ref(Node* node) { drop(node, kOwner); }
  /// Owners of all kinds. What was done by owners that have gone since is visible to the caller.
  std::uint32_t ref_count() const {
    return static_cast<std::uint32_t>(owners_.load(std::memory_order_acquire));
  }
  /// Whether a program holds the node (NodeHandle).
  bool is_held() const { return owners_.load(std::memory_order_acquire) >= kHandle; }

  /// Scratch of a graph walk, under graph_mutex(): the walk's number and the node's position in it.
  mutable std::uint64_t walk = 0;
  mutable std::uint32_t walk_index = 0;

 private:
  friend class NodeHandle;
  class Released;

  /// Holds what a node has once evaluation is scheduled.
  struct Result : InSmallMemory<Result> {
    Value value;
    OriginsPtr origins;
    std::unique_ptr<KeptHistory> kept;  // its history, if it ever kept one
    std::uint32_t depth = 0;            // of that
  };

  // Owners are counted in the low half, and those of them that are handles once more in the high half.
  static constexpr std::uint64_t kOwner = 1;
  static constexpr std::uint64_t kHandle = std::uint64_t{1} << 32;

  static void drop(Node* node, std::uint64_t unit) {
    if (unit != kOwner) node->note_last_handle();
    if (node->let_go(unit)) destroy(node);
  }
  /// Notes that the last handle went. A node that stays for others may stay for a history alone: it is
  /// counted (HistoryStats).
  void note_last_handle() {
    const std::uint64_t owners = owners_.load(std::memory_order_relaxed);
    const bool stays = owners >> 32 == 1 && static_cast<std::uint32_t>(owners) > 1;
    if (stays && has_value_.load(std::memory_order_relaxed)) count_loose();
  }
  void count_loose();
  void enter_lazy_scalars();
  std::uint64_t value_bytes() const { return static_cast<std::uint64_t>(shape().numel()) * size_of(dtype_); }
  bool has_one_owner() const {
    return static_cast<std::uint32_t>(owners_.load(std::memory_order_acquire)) == 1 && !is_listed_ &&
           !is_kept_;
  }
  /// True if that was the last owner. The only one need not count down, unless somebody may look for the node
  /// without owning it: nobody else is left to count with.
  bool let_go(std::uint64_t unit) {
    if (has_one_owner()) return true;
    return static_cast<std::uint32_t>(owners_.fetch_sub(unit, std::memory_order_acq_rel)) == 1;
  }
  /// Destroys a node without owners.
  static void destroy(Node* node);

  /// `tail_bytes`: of what is behind the node.
  Node(const OpDef& op, const InternedShape& shape, DType dtype, Device device, std::size_t input_count,
       std::size_t attribute_count, std::size_t tail_bytes);
  void share_inputs(std::span<Node* const> inputs, std::span<const std::int64_t> attributes);
  ~Node();

  /// Behind the node, in the same block, are its attributes, its inputs and, of a call, its rule.
  template <class T>
  T* tail(std::size_t offset) const {
    auto* start = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(this + 1));
    return reinterpret_cast<T*>(start + offset);
  }
  NodePtr* owned_inputs() { return tail<NodePtr>(attribute_count_ * sizeof(std::int64_t)); }
  /// Calls have no values, so they never let go of their inputs: the place stays where it is.
  std::shared_ptr<const CallRule>* owned_rule() const {
    return tail<std::shared_ptr<const CallRule>>(attribute_count_ * sizeof(std::int64_t) +
                                                 input_count_ * sizeof(NodePtr));
  }

  /// Behind the attributes of a node of OpClass::control, and counted as such, so that the inputs, which it
  /// may let go of, come last: a pointer in the place of two words.
  static constexpr std::size_t kFlowWords = sizeof(std::shared_ptr<const ControlFlow>) / sizeof(std::int64_t);
  std::shared_ptr<const ControlFlow>* owned_flow() const {
    return tail<std::shared_ptr<const ControlFlow>>((attribute_count_ - kFlowWords) * sizeof(std::int64_t));
  }

  // Most programs keep many nodes, and all make many: a node with two inputs takes no more than two lines of
  // a processor's cache.
  std::atomic<std::uint64_t> owners_{kOwner};
  const OpDef* op_;
  InternedShape shape_;
  std::uint64_t id_ = 0;
  std::unique_ptr<Result> result_;
  OriginTagPtr tag_;
  std::unique_ptr<LazyScalar> lazy_scalar_;  // while it is one
  std::uint32_t input_count_;
  std::uint32_t tail_bytes_;
  std::uint32_t attribute_count_;
  OpClass kind_;
  DType dtype_;
  Device device_;
  std::atomic<bool> has_value_{false};
  std::atomic<bool> is_cut_{false};
  std::atomic<bool> is_kept_{false};
  std::atomic<bool> pending_{false};
  std::atomic<bool> is_loose_{false};
  bool is_traced_ = false;
  bool is_listed_ = false;  // as a lazy scalar, now or before
  bool was_passed_by_ = false;
};

/// Guards the edges of every graph: walks hold it, and so does evaluation while it schedules. Building nodes
/// does not.
std::mutex& graph_mutex();

/// A fresh number for Node::walk. Under graph_mutex().
std::uint64_t next_walk();

/// Holds what a walk over a graph works with. Kept from one walk to the next, it saves allocations.
struct Walk {
  /// A node on the way, and those of its inputs that are left.
  struct Open {
    Node* node;
    const NodePtr* next;
    const NodePtr* end;
  };
  std::vector<Node*> order;
  std::vector<Open> stack;
};

/// Everything reachable from `outputs` through inputs_of(node) in topological order (inputs first), each node
/// once, in walk.order. Stops at nodes for which `stop(node)` is true (they are included). Calls
/// visit(node, place) just before the node takes its place in the order. Iterative. Caller holds
/// graph_mutex(). Sets walk and walk_index of the nodes.
template <class InputsOf, class Stop, class Visit>
void walk_graph(std::span<Node* const> outputs, InputsOf inputs_of, Stop stop, Walk& into, Visit visit) {
  const std::uint64_t walk = next_walk();
  auto& [order, stack] = into;
  order.clear();
  stack.clear();
  for (Node* output : outputs) {
    Node* node = output->walk != walk ? output : nullptr;  // that the walk comes to
    while (true) {
      if (node != nullptr) {
        node->walk = walk;
        const std::span<const NodePtr> inputs = stop(*node) ? std::span<const NodePtr>() : inputs_of(*node);
        stack.push_back({node, inputs.data(), inputs.data() + inputs.size()});
        node = nullptr;
      }
      if (stack.empty()) break;
      Walk::Open& top = stack.back();
      while (top.next != top.end && (*top.next)->walk == walk) ++top.next;
      if (top.next != top.end) {
        node = (top.next++)->get();
        continue;
      }
      Node* done = top.node;
      stack.pop_back();
      visit(*done, static_cast<std::uint32_t>(order.size()));
      done->walk_index = static_cast<std::uint32_t>(order.size());
      order.push_back(done);
    }
  }
}

/// Walks through all inputs, as transforms and views do.
template <class Stop>
std::vector<Node*> topological_order(std::span<Node* const> outputs, Stop stop) {
  Walk walk;
  walk_graph(
      outputs, [](const Node& node) { return node.inputs(); }, stop, walk, [](Node&, std::uint32_t) {});
  return std::move(walk.order);
}
/// Walks through operands, as evaluation does. It meets no call.
template <class Stop, class Visit>
void evaluation_order(std::span<Node* const> outputs, Stop stop, Walk& into, Visit visit) {
  walk_graph(
      outputs, [](const Node& node) { return node.operands(); }, stop, into, visit);
}
template <class Stop>
void evaluation_order(std::span<Node* const> outputs, Stop stop, Walk& into) {
  evaluation_order(outputs, stop, into, [](Node&, std::uint32_t) {});
}

/// The node's value as it is now, if it has one: what is read of a node that evaluations may be at work on.
/// Takes graph_mutex().
std::optional<Value> value_of(const Node& node);

inline NodePtr::NodePtr(const NodePtr& other) : node_(other.node_) {
  if (node_ != nullptr) node_->add_ref();
}
inline NodePtr::~NodePtr() {
  if (node_ != nullptr) Node::drop_ref(node_);
}

inline NodeHandle::NodeHandle(NodePtr node) : node_(node.release()) {
  if (node_ == nullptr) return;
  // The count of a node that nobody else owns needs no care.
  if (node_->owners_.load(std::memory_order_relaxed) == Node::kOwner && node_->has_one_owner())
    node_->owners_.store(Node::kHandle + Node::kOwner, std::memory_order_relaxed);
  else
    node_->owners_.fetch_add(Node::kHandle, std::memory_order_relaxed);
}
inline NodeHandle::NodeHandle(const NodeHandle& other) : node_(other.node_) {
  if (node_ != nullptr) node_->owners_.fetch_add(Node::kHandle + Node::kOwner, std::memory_order_relaxed);
}
inline NodeHandle::~NodeHandle() {
  if (node_ != nullptr) Node::drop(node_, Node::kHandle + Node::kOwner);
}

}  // namespace caldera
