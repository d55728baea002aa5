#include "engine/distributed/message_node.h"

#include <fmt/format.h>

#include <array>
#include <cstring>
#include <utility>

#include "engine/compile/program/control_flow.h"
#include "engine/graph/host_exchange.h"
#include "ops/core/node_builder.h"

namespace caldera::distributed {
namespace {

std::unique_ptr<std::byte[]> memory_of(std::size_t bytes) {
  return std::unique_ptr<std::byte[]>(new std::byte[bytes > 0 ? bytes : 1]);  // not set: it is written whole
}

class PendingMessage final : public PendingExchange {
 public:
  PendingMessage(std::size_t bytes, std::size_t result_bytes, bool in_place)
      : input(memory_of(bytes)),
        result(in_place ? nullptr : memory_of(result_bytes)),
        result_bytes_(result_bytes) {}
  ~PendingMessage() override {
    if (done == nullptr) return;
    try {
      done->wait();
    } catch (...) {  // the caller has its error; MPI may still use the memory
      (void)input.release();
      (void)result.release();
    }
  }

  std::span<const std::byte> finish() override {
    done->wait();
    done = nullptr;
    if (leaves_zero) std::memset(input.get(), 0, result_bytes_);
    return {result != nullptr ? result.get() : input.get(), result_bytes_};
  }

  std::unique_ptr<std::byte[]> input, result;
  std::shared_ptr<Completion> done;
  bool leaves_zero = false;

 private:
  std::size_t result_bytes_;
};

class Message final : public HostExchange {
 public:
  Message(std::string_view name, const MessageTraits& traits, DType dtype, const Shape& shape,
          std::int64_t elements)
      : traits(traits), name_(name), dtype_(dtype), elements_(elements) {
    text_ = fmt::format("{} of {} {}", name, shape.to_string(), caldera::name(dtype));
    if (traits.kind == MessageKind::broadcast) text_ += fmt::format(" of rank {}", traits.peer);
  }

  std::string_view name() const override { return name_; }

  /// What is gathered is larger than what it is gathered of: memory decides.
  bool is_early() const override { return traits.kind != MessageKind::all_gather; }

  Begun begin(std::size_t bytes, std::size_t result_bytes) const override {
    auto pending = std::make_unique<PendingMessage>(bytes, result_bytes, is_in_place());
    const std::span<std::byte> input(pending->input.get(), bytes);
    return {input, std::move(pending)};
  }

  void start(PendingExchange& pending) const override {
    auto& p = static_cast<PendingMessage&>(pending);
    Communicator& ranks = traits.group.ranks();
    const auto bytes = elements_ * static_cast<std::int64_t>(size_of(dtype_));
    switch (traits.kind) {
      case MessageKind::all_sum:
        p.done = ranks.all_reduce(Combine::sum, traits.order, dtype_, p.input.get(), elements_);
        break;
      case MessageKind::all_max:
        p.done = ranks.all_reduce(Combine::max, traits.order, dtype_, p.input.get(), elements_);
        break;
      case MessageKind::all_min:
        p.done = ranks.all_reduce(Combine::min, traits.order, dtype_, p.input.get(), elements_);
        break;
      case MessageKind::all_gather:
        p.done = ranks.all_gather(text_, p.input.get(), p.result.get(), bytes);
        break;
      case MessageKind::reduce_scatter:
        p.done = ranks.reduce_scatter(dtype_, p.input.get(), p.result.get(), elements_ / ranks.size());
        break;
      case MessageKind::broadcast:
        p.done = ranks.broadcast(text_, p.input.get(), bytes, traits.peer);
        break;
      case MessageKind::sum_to:
        p.leaves_zero = ranks.rank() != traits.peer;
        p.done = ranks.all_reduce(Combine::sum, traits.order, dtype_, p.input.get(), elements_);
        break;
      case MessageKind::send_away:
        p.leaves_zero = true;
        [[fallthrough]];
      case MessageKind::send:
        p.done = ranks.send(between(), p.input.get(), bytes, traits.peer);
        break;
      case MessageKind::receive:
        p.done = ranks.receive(between(), p.result.get(), bytes, traits.peer);
        break;
    }
  }

  const MessageTraits traits;

 private:
  bool is_in_place() const {
    return traits.kind != MessageKind::all_gather && traits.kind != MessageKind::reduce_scatter &&
           traits.kind != MessageKind::receive;
  }
  /// The same for both ranks of a message.
  std::string between() const { return text_.substr(text_.find(" of ") + 4); }

  std::string name_, text_;
  DType dtype_;
  std::int64_t elements_;  // of the input; of what is received
};

}  // namespace

LazyTensor message_node(const OpDef& op, const MessageTraits& traits, const LazyTensor& x, const Shape& shape,
                        DType dtype) {
  ops::check_extents(op.name, shape, dtype);
  const LazyTensor input = ops::anchored(x, x.device());
  auto flow = std::make_shared<ControlFlow>();
  flow->layout = {.kind = ControlKind::exchange, .constants = 1, .stacked = 1};
  flow->inputs = {{input.dtype(), input.node().interned_shape()}};
  flow->results = {{dtype, InternedShape(shape)}};
  const bool is_received = traits.kind == MessageKind::receive;
  flow->exchange = std::make_shared<Message>(op.name, traits, dtype, is_received ? shape : input.shape(),
                                             is_received ? shape.numel() : input.numel());
  for (const std::int64_t word :
       {static_cast<std::int64_t>(traits.kind), static_cast<std::int64_t>(traits.order),
        static_cast<std::int64_t>(traits.peer), static_cast<std::int64_t>(traits.group.ranks().id()),
        static_cast<std::int64_t>(input.dtype()), static_cast<std::int64_t>(dtype)})
    flow->hash.mix(static_cast<std::uint64_t>(word));
  for (const std::int64_t extent : shape) flow->hash.mix(static_cast<std::uint64_t>(extent));
  const std::array<std::int64_t, 2> attributes{static_cast<std::int64_t>(flow->hash.lo),
                                               static_cast<std::int64_t>(flow->hash.hi)};
  Node* const node = &input.node();
  return LazyTensor(Node::make_control(op, InternedShape(shape), dtype, input.device(), std::move(flow),
                                       std::span<Node* const>(&node, 1), attributes));
}

const MessageTraits& traits_of(const LazyTensor& message) {
  return static_cast<const Message&>(*message.node().control_flow()->exchange).traits;
}

}  // namespace caldera::distributed
