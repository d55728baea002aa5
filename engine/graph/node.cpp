#include "engine/graph/node.h"

#include <memory>
#include <new>
#include <vector>

#include "engine/graph/trace.h"

namespace caldera {
namespace {

std::atomic<std::uint64_t> next_id{1};

}  // namespace

void Event::wait() const {
  while (!is_set()) state_.wait(0, std::memory_order_acquire);
  if (error_) std::rethrow_exception(error_);
}

void Event::set(std::exception_ptr error) {
  error_ = std::move(error);
  state_.store(1, std::memory_order_release);
  state_.notify_all();
}

NodePtr Node::make(const OpDef& op, const Shape& shape, DType dtype, Device device,
                   std::span<Node* const> inputs, std::span<const std::int64_t> attributes) {
  const std::size_t bytes = sizeof(Node) + attributes.size_bytes() + inputs.size() * sizeof(NodePtr);
  return NodePtr(new (::operator new(bytes)) Node(op, shape, dtype, device, inputs, attributes));
}

NodePtr Node::make_call(const OpDef& op, std::shared_ptr<const CallRule> rule, std::span<Node* const> inputs,
                        std::span<const std::int64_t> attributes) {
  const std::size_t bytes =
      sizeof(Node) + attributes.size_bytes() + inputs.size() * sizeof(NodePtr) + sizeof(rule);
  // Gradients pass through what is floating, so a call counts as that.
  NodePtr call(new (::operator new(bytes)) Node(op, Shape{}, DType::f32, Device::cpu(), inputs, attributes));
  std::construct_at(call->owned_rule(), std::move(rule));
  return call;
}

NodePtr Node::with_inputs(std::span<Node* const> inputs) const {
  if (is_call()) return make_call(*op_, call_rule(), inputs, attributes().values());
  return make(*op_, shape_, dtype_, device_, inputs, attributes().values());
}

Node::Node(const OpDef& op, const Shape& shape, DType dtype, Device device, std::span<Node* const> inputs,
           std::span<const std::int64_t> attributes)
    : input_count_(static_cast<std::uint32_t>(inputs.size())),
      attribute_count_(static_cast<std::uint32_t>(attributes.size())),
      dtype_(dtype),
      device_(device),
      op_(&op),
      id_(next_id.fetch_add(1, std::memory_order_relaxed)),
      shape_(shape) {
  static_assert(sizeof(Node) % alignof(std::int64_t) == 0 && alignof(Node) == alignof(std::int64_t));
  std::uninitialized_copy(attributes.begin(), attributes.end(), tail<std::int64_t>(0));
  NodePtr* to = owned_inputs();
  for (Node* input : inputs) {
    input->add_ref();
    new (to++) NodePtr(input);
    if (input->trace_ && !trace_ && input->is_traced()) trace_ = input->trace_;
  }
}

void Node::set_value(Value value) {
  value_ = std::move(value);
  has_value_.store(true, std::memory_order_release);
}

void Node::detach_inputs(std::vector<NodePtr>& bin) {
  if (input_count_ == 0) return;
  NodePtr* from = owned_inputs();
  for (std::uint32_t i = 0; i < input_count_; ++i) bin.push_back(std::move(from[i]));
  input_count_ = 0;
  detached_.store(true, std::memory_order_relaxed);
}

bool Node::is_traced() const { return trace_ && trace_->active.load(std::memory_order_relaxed); }

void Node::release_inputs(std::vector<NodePtr>& bin) {
  if (!is_traced()) {
    detach_inputs(bin);
    return;
  }
  add_ref();
  trace_->kept.emplace_back(this);
}

void end_trace(Trace& trace) {
  std::vector<NodePtr> bin;  // released after the mutex
  const std::scoped_lock lock(graph_mutex());
  trace.active = false;
  for (const NodePtr& node : trace.kept) node->detach_inputs(bin);
  for (NodePtr& node : trace.kept) bin.push_back(std::move(node));
  trace.kept.clear();
}

void Node::destroy(Node* node) {
  // Destroying a node drops its inputs, which may destroy them: a list instead of recursion, so that a chain
  // of a million nodes does not need a million stack frames. The list runs through the dead nodes' walk
  // numbers, which nobody reads any more: destruction must not allocate.
  node->walk = 0;
  for (Node* dead = node; dead != nullptr;) {
    Node* victim = dead;
    dead = reinterpret_cast<Node*>(static_cast<std::uintptr_t>(victim->walk));
    NodePtr* inputs = victim->owned_inputs();
    for (std::uint32_t i = 0; i < victim->input_count_; ++i) {
      Node* input = inputs[i].release();
      if (input == nullptr || !input->drop_ref()) continue;
      input->walk = reinterpret_cast<std::uintptr_t>(dead);
      dead = input;
    }
    if (victim->is_call()) std::destroy_at(victim->owned_rule());
    victim->~Node();
    ::operator delete(victim);
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
