#include "engine/distributed/sharded_layers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <utility>
#include <vector>

#include "engine/compile/program/control_flow.h"
#include "engine/graph/host_exchange.h"
#include "engine/tensor/dispatch.h"
#include "ops/core/cast.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"

namespace caldera::distributed {
namespace {

constexpr std::int64_t kAlignment = 64;
constexpr std::size_t kNone = static_cast<std::size_t>(-1);

/// Elements [begin, end) of a tensor as the host has them.
std::vector<std::byte> bytes_of(const LazyTensor& x, std::int64_t begin, std::int64_t end) {
  const LazyTensor part = slice(reshape(x, {x.numel()}), 0, begin, end).to(Device::cpu());
  std::vector<std::byte> bytes(static_cast<std::size_t>(end - begin) * size_of(x.dtype()));
  dispatch<is_floating>(x.dtype(), [&]<class T>() {
    const std::vector<T> values = part.to_vector<T>();
    if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  });
  return bytes;
}

struct Place {
  std::int64_t at = 0;  // bytes from the layer's begin
  std::int64_t bytes = 0;
  Shape shape;
  DType dtype = DType::f32;
};

struct Layer {
  std::vector<Place> tensors;
  std::int64_t part = 0;  // bytes of each rank
  std::vector<std::byte> own;
};

/// A layer on its way to this rank, or there.
struct Flight {
  std::size_t layer = kNone;
  std::vector<std::byte> whole;
  std::vector<std::shared_ptr<Completion>> open;

  Flight() = default;
  Flight(const Flight&) = delete;
  Flight& operator=(const Flight&) = delete;
  ~Flight() {
    try {
      wait();
    } catch (...) {  // who reads has its error
    }
  }
  void wait() {
    while (!open.empty()) {
      const std::shared_ptr<Completion> next = std::move(open.back());
      open.pop_back();
      next->wait();
    }
  }
};

}  // namespace

struct ShardedLayers::State {
  Group group;
  std::vector<Layer> layers;
  std::size_t before = kNone;  // the layer that was read before the present one
  std::shared_ptr<Flight> present, next;
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> followers;  // of two layers in a row

  std::shared_ptr<Flight> begun(std::size_t number) const {
    const Layer& layer = layers[number];
    Communicator& ranks = group.ranks();
    auto flight = std::make_shared<Flight>();
    flight->layer = number;
    flight->whole.resize(static_cast<std::size_t>(layer.part * ranks.size()));
    const std::string what = fmt::format("layer {}", number);
    std::byte* const to = flight->whole.data();
    std::memcpy(to + ranks.rank() * layer.part, layer.own.data(), layer.own.size());
    for (int k = 1; k < ranks.size(); ++k) {
      const int other = (ranks.rank() + k) % ranks.size();
      flight->open.push_back(ranks.receive(what, to + other * layer.part, layer.part, other));
      flight->open.push_back(ranks.send(what, layer.own.data(), layer.part, other));
    }
    return flight;
  }

  std::shared_ptr<Flight> reading(std::size_t number) {
    if (present != nullptr && present->layer == number) return present;
    const std::size_t last = present != nullptr ? present->layer : kNone;
    followers[{before, last}] = number;
    before = last;
    const bool is_ahead = next != nullptr && next->layer == number;
    present = is_ahead ? std::move(next) : begun(number);
    next = nullptr;
    if (const auto found = followers.find({before, number}); found != followers.end())
      next = begun(found->second);
    return present;
  }
};

namespace {

class PendingRead final : public PendingExchange {
 public:
  PendingRead(std::size_t bytes, const Place& place) : input(bytes), place_(place) {}
  std::span<const std::byte> finish() override {
    flight->wait();
    return {flight->whole.data() + place_.at, static_cast<std::size_t>(place_.bytes)};
  }
  std::vector<std::byte> input;
  std::shared_ptr<Flight> flight;

 private:
  const Place& place_;
};

const OpDef kRead{.name = "read_sharded", .kind = OpClass::control};

}  // namespace

ShardedLayers::ShardedLayers(const Group& group) : state_(std::make_shared<State>()) {
  state_->group = group;
}

std::size_t ShardedLayers::add(std::span<const LazyTensor> tensors) {
  const std::int64_t size = state_->group.size(), rank = state_->group.rank();
  Layer layer;
  std::int64_t total = 0;
  for (const LazyTensor& x : tensors) {
    const auto bytes = x.numel() * static_cast<std::int64_t>(size_of(x.dtype()));
    layer.tensors.push_back({.at = total, .bytes = bytes, .shape = x.shape(), .dtype = x.dtype()});
    total += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  layer.part = (total + size * kAlignment - 1) / (size * kAlignment) * kAlignment;
  layer.own.resize(static_cast<std::size_t>(layer.part));
  const std::int64_t first = rank * layer.part, last = first + layer.part;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const Place& place = layer.tensors[i];
    const std::int64_t begin = std::max(first, place.at), end = std::min(last, place.at + place.bytes);
    if (begin >= end) continue;
    const auto width = static_cast<std::int64_t>(size_of(place.dtype));
    const std::vector<std::byte> part =
        bytes_of(tensors[i], (begin - place.at) / width, (end - place.at) / width);
    std::memcpy(layer.own.data() + (begin - first), part.data(), part.size());
  }
  state_->layers.push_back(std::move(layer));
  return state_->layers.size() - 1;
}

LazyTensor ShardedLayers::read(std::size_t layer, std::size_t tensor, const LazyTensor& after) const {
  class Read final : public HostExchange {
   public:
    Read(std::shared_ptr<State> state, std::size_t layer, std::size_t tensor)
        : state_(std::move(state)), layer_(layer), tensor_(tensor) {}
    std::string_view name() const override { return "read_sharded"; }
    bool is_early() const override { return false; }  // what is read stays until it was used
    int queue() const override { return 1; }          // gradients do not wait for what is read after them
    Begun begin(std::size_t bytes, std::size_t) const override {
      auto pending = std::make_unique<PendingRead>(bytes, state_->layers[layer_].tensors[tensor_]);
      const std::span<std::byte> input(pending->input);
      return {input, std::move(pending)};
    }
    void start(PendingExchange& pending) const override {
      static_cast<PendingRead&>(pending).flight = state_->reading(layer_);
    }

   private:
    std::shared_ptr<State> state_;
    std::size_t layer_, tensor_;
  };
  const Place& place = state_->layers[layer].tensors[tensor];
  const LazyTensor token = slice(reshape(stop_gradient(after), {after.numel()}), 0, 0, 1);
  auto flow = std::make_shared<ControlFlow>();
  flow->layout = {.kind = ControlKind::exchange, .constants = 1, .stacked = 1};
  flow->inputs = {{token.dtype(), token.node().interned_shape()}};
  flow->results = {{place.dtype, InternedShape(place.shape)}};
  flow->exchange = std::make_shared<Read>(state_, layer, tensor);
  flow->hash.mix("read_sharded");
  for (const std::size_t word :
       {reinterpret_cast<std::size_t>(state_.get()), layer, tensor, static_cast<std::size_t>(token.dtype())})
    flow->hash.mix(static_cast<std::uint64_t>(word));
  const std::array<std::int64_t, 2> attributes{static_cast<std::int64_t>(flow->hash.lo),
                                               static_cast<std::int64_t>(flow->hash.hi)};
  Node* const node = &token.node();
  return LazyTensor(Node::make_control(kRead, InternedShape(place.shape), place.dtype, token.device(),
                                       std::move(flow), std::span<Node* const>(&node, 1), attributes));
}

std::int64_t ShardedLayers::own_bytes() const {
  std::int64_t bytes = 0;
  for (const Layer& layer : state_->layers) bytes += layer.part;
  return bytes;
}

std::int64_t ShardedLayers::largest_layer_bytes() const {
  std::int64_t largest = 0;
  for (const Layer& layer : state_->layers) largest = std::max(largest, layer.part * state_->group.size());
  return largest;
}

}  // namespace caldera::distributed
