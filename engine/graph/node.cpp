#include "engine/graph/node.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <new>
#include <vector>

namespace caldera {
namespace {

constexpr std::uint64_t kIdsAtOnce = 1024;
constinit std::atomic<std::uint64_t> first_free_id{1};
/// Those that this thread has taken and not given to a node yet.
constinit thread_local std::uint64_t next_of_thread = 0;
constinit thread_local std::uint64_t end_of_thread = 0;

void take_ids() {
  next_of_thread = first_free_id.fetch_add(kIdsAtOnce, std::memory_order_relaxed);
  end_of_thread = next_of_thread + kIdsAtOnce;
}

/// A number that no other node has, larger than `above`, which some node has or is 0.
std::uint64_t next_id(std::uint64_t above) {
  if (next_of_thread == end_of_thread || next_of_thread <= above) take_ids();
  return next_of_thread++;
}

}  // namespace

// Both are called in this file alone, for every node.
inline Node::Node(const OpDef& op, const InternedShape& shape, DType dtype, Device device,
                  std::size_t input_count, std::size_t attribute_count, std::size_t tail_bytes)
    : op_(&op),
      shape_(shape),
      input_count_(static_cast<std::uint32_t>(input_count)),
      tail_bytes_(static_cast<std::uint32_t>(tail_bytes)),
      attribute_count_(static_cast<std::uint32_t>(attribute_count)),
      kind_(op.kind),
      dtype_(dtype),
      device_(device) {
  static_assert(sizeof(Node) + 2 * sizeof(NodePtr) <= 128);
  static_assert(sizeof(Node) % alignof(std::int64_t) == 0 && alignof(Node) == alignof(std::int64_t));
}

inline Node::~Node() {
  if (tag_) tag_->die();
  if (is_loose_.load(std::memory_order_relaxed))
    HistoryList::count_loose(-static_cast<std::int64_t>(value_bytes()));
}

void Node::share_inputs(std::span<Node* const> inputs, std::span<const std::int64_t> attributes) {
  std::uninitialized_copy(attributes.begin(), attributes.end(), tail<std::int64_t>(0));
  NodePtr* to = owned_inputs();
  std::uint64_t youngest = 0;
  for (Node* input : inputs) {
    input->add_ref();
    new (to++) NodePtr(input);
    is_traced_ = is_traced_ || input->is_traced_;
    youngest = std::max(youngest, input->id_);
  }
  id_ = next_id(youngest);
}

NodePtr Node::make(const OpDef& op, const InternedShape& shape, DType dtype, Device device,
                   std::span<Node* const> inputs, std::span<const std::int64_t> attributes) {
  const std::size_t tail_bytes = attributes.size_bytes() + inputs.size() * sizeof(NodePtr);
  NodePtr node(new (allocate_small(sizeof(Node) + tail_bytes))
                   Node(op, shape, dtype, device, inputs.size(), attributes.size(), tail_bytes));
  node->share_inputs(inputs, attributes);
  if (shape.get().rank() == 0 && !inputs.empty()) node->enter_lazy_scalars();
  return node;
}

NodePtr Node::make(const OpDef& op, const InternedShape& shape, DType dtype, Device device, Node& a,
                   Node& b) {
  constexpr std::size_t kTailBytes = 2 * sizeof(NodePtr);
  NodePtr node(new (allocate_small(sizeof(Node) + kTailBytes))
                   Node(op, shape, dtype, device, 2, 0, kTailBytes));
  a.add_ref();
  b.add_ref();
  new (node->tail<NodePtr>(0)) NodePtr(&a);
  new (node->tail<NodePtr>(sizeof(NodePtr))) NodePtr(&b);
  node->is_traced_ = a.is_traced_ || b.is_traced_;
  node->id_ = next_id(std::max(a.id_, b.id_));
  if (shape.get().rank() == 0) node->enter_lazy_scalars();
  return node;
}

void Node::start_ids() { take_ids(); }
void Node::start_ids(std::uint64_t above) {
  if (next_of_thread <= above) take_ids();
}

void Node::enter_lazy_scalars() {
  is_listed_ = true;
  lazy_scalar_ = std::make_unique<LazyScalar>(*this);
}

NodePtr Node::make_call(const OpDef& op, std::shared_ptr<const CallRule> rule, std::span<Node* const> inputs,
                        std::span<const std::int64_t> attributes) {
  const std::size_t tail_bytes = attributes.size_bytes() + inputs.size() * sizeof(NodePtr) + sizeof(rule);
  // Gradients pass through what is floating, so a call counts as that.
  NodePtr call(new (allocate_small(sizeof(Node) + tail_bytes)) Node(
      op, InternedShape(Shape{}), DType::f32, Device::cpu(), inputs.size(), attributes.size(), tail_bytes));
  call->share_inputs(inputs, attributes);
  std::construct_at(call->owned_rule(), std::move(rule));
  return call;
}

NodePtr Node::make_control(const OpDef& op, const InternedShape& shape, DType dtype, Device device,
                           std::shared_ptr<const ControlFlow> flow, std::span<Node* const> inputs,
                           std::span<const std::int64_t> attributes) {
  static_assert(sizeof flow == kFlowWords * sizeof(std::int64_t));
  std::vector<std::int64_t> words(attributes.begin(), attributes.end());
  words.resize(words.size() + kFlowWords);
  NodePtr node = make(op, shape, dtype, device, inputs, words);
  std::construct_at(node->owned_flow(), std::move(flow));
  return node;
}

NodePtr Node::with_inputs(std::span<Node* const> inputs) const {
  if (is_call()) return make_call(*op_, call_rule(), inputs, attributes().values());
  if (kind_ == OpClass::control)
    return make_control(*op_, shape_, dtype_, device_, control_flow(), inputs, attributes().values());
  return make(*op_, shape_, dtype_, device_, inputs, attributes().values());
}

void Node::count_loose() {
  if (!is_loose_.exchange(true, std::memory_order_relaxed))
    HistoryList::count_loose(static_cast<std::int64_t>(value_bytes()));
  if (is_kept_.load(std::memory_order_acquire)) HistoryList::note_loose(*result_->kept);
}

void Node::set_value(Value value) {
  if (result_ == nullptr) result_ = std::make_unique<Result>();
  result_->value = std::move(value);
  lazy_scalar_.reset();
  has_value_.store(true, std::memory_order_release);
}

void Node::drop_value() {
  has_value_.store(false, std::memory_order_release);
  if (is_kept_) HistoryList::remove(*result_->kept);
  if (is_loose_.exchange(false, std::memory_order_relaxed))
    HistoryList::count_loose(-static_cast<std::int64_t>(value_bytes()));
  result_->value = {};
  if (is_listed_) enter_lazy_scalars();
}

void Node::cut(OriginsPtr origins, std::vector<NodePtr>& to) {
  if (is_kept_) HistoryList::remove(*result_->kept);
  result_->origins = std::move(origins);
  is_cut_.store(true, std::memory_order_relaxed);
  NodePtr* from = owned_inputs();
  to.insert(to.end(), std::make_move_iterator(from), std::make_move_iterator(from + input_count_));
  input_count_ = 0;
}

void Node::mend(std::span<NodePtr> inputs) {
  std::move(inputs.begin(), inputs.end(), owned_inputs());
  input_count_ = static_cast<std::uint32_t>(inputs.size());
  is_cut_.store(false, std::memory_order_relaxed);
  result_->origins = {};
}

void Node::keep_history(std::size_t nodes, std::uint64_t bytes, std::uint32_t depth) {
  result_->depth = depth;
  if (is_optional_value()) HistoryList::remove(*result_->kept);  // asked for, it does not go any more
  if (result_->kept == nullptr) result_->kept = std::make_unique<KeptHistory>();
  is_kept_.store(true, std::memory_order_release);  // and stays: who finds the node in the list may own it
  HistoryList::add(*result_->kept, *this, nodes, bytes);
}

void Node::keep_optional_value() {
  if (result_->kept == nullptr) result_->kept = std::make_unique<KeptHistory>();
  is_kept_.store(true, std::memory_order_release);
  HistoryList::add_optional(*result_->kept, *this);
}

bool Node::add_ref_if_owned() {
  std::uint64_t owners = owners_.load(std::memory_order_relaxed);
  while (static_cast<std::uint32_t>(owners) != 0) {
    if (owners_.compare_exchange_weak(owners, owners + kOwner, std::memory_order_relaxed)) return true;
  }
  return false;
}

const OriginTagPtr& Node::make_origin_tag() {
  if (!tag_) tag_ = OriginTagPtr(new OriginTag);
  return tag_;
}

std::optional<Value> value_of(const Node& node) {
  const std::scoped_lock lock(graph_mutex());
  if (!node.has_value()) return std::nullopt;
  return node.value();
}

/// Owners of one node that go together: a leaf that a loop reads again and again loses them at once.
class Node::Released {
 public:
  explicit Released(Node*& dead) : dead_(dead) {}
  /// One owner of the node goes.
  void add(Node* node) {
    if (node == node_) {
      ++owners_;
      return;
    }
    settle();
    node_ = node;
    owners_ = 1;
  }
  /// Adds the node to the dead ones if these were its last owners.
  void settle() {
    Node* node = std::exchange(node_, nullptr);
    if (node == nullptr) return;
    const std::uint64_t before = node->owners_.fetch_sub(owners_ * kOwner, std::memory_order_acq_rel);
    if (static_cast<std::uint32_t>(before) == owners_) add_dead(node, dead_);
  }
  /// The list of dead nodes runs through their walk numbers, which nobody reads any more: destruction must
  /// not allocate.
  static void add_dead(Node* node, Node*& dead) {
    node->walk = reinterpret_cast<std::uintptr_t>(dead);
    dead = node;
  }

 private:
  Node*& dead_;
  Node* node_ = nullptr;
  std::uint32_t owners_ = 0;
};

void Node::destroy(Node* node) {
  // Destroying a node drops its inputs, which may destroy them: a list instead of recursion, so that a chain
  // of a million nodes does not need a million stack frames.
  Node* dead = nullptr;
  Released released(dead);
  Released::add_dead(node, dead);
  while (dead != nullptr) {
    Node* victim = dead;
    dead = reinterpret_cast<Node*>(static_cast<std::uintptr_t>(victim->walk));
    victim->lazy_scalar_.reset();
    if (victim->is_kept_) HistoryList::remove(*victim->result_->kept);
    NodePtr* inputs = victim->owned_inputs();
    for (std::uint32_t i = 0; i < victim->input_count_; ++i) {
      Node* input = inputs[i].release();
      if (input == nullptr) continue;
      if (input->has_one_owner())
        Released::add_dead(input, dead);
      else
        released.add(input);
    }
    if (victim->is_call()) std::destroy_at(victim->owned_rule());
    if (victim->kind_ == OpClass::control) std::destroy_at(victim->owned_flow());
    const std::size_t bytes = sizeof(Node) + victim->tail_bytes_;
    victim->~Node();
    free_small(victim, bytes);
    if (dead == nullptr) released.settle();
  }
}

std::mutex& graph_mutex() {
  static auto* mutex = new std::mutex;  // outlives every static tensor
  return *mutex;
}

std::uint64_t next_walk() {
  static std::uint64_t walk = 0;
  return ++walk;
}

}  // namespace caldera
