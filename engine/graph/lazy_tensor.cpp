#include "engine/graph/lazy_tensor.h"

#include <fmt/core.h>

namespace caldera {

bool EvalFuture::is_ready() const {
  for (const auto& event : events_) {
    if (!event->is_set()) return false;
  }
  return true;
}

void EvalFuture::cancel() const {
  for (const auto& event : events_) event->request_cancel();
}

void EvalFuture::get() const {
  for (const auto& event : events_) event->wait();
}

bool LazyTensor::is_evaluated() const {
  const std::optional<Value> value = value_of(node());
  return value && (value->ready == nullptr || (value->ready->is_set() && !value->ready->error()));
}

std::size_t LazyTensor::graph_size() const {
  Node* output = &node();
  const std::scoped_lock lock(graph_mutex());
  Walk walk;
  evaluation_order(
      {&output, 1}, [](const Node& x) { return x.has_value() || x.is_scalar_leaf(); }, walk);
  std::size_t lazy = 0;
  for (const Node* n : walk.order) {
    if (!n->has_value()) ++lazy;
  }
  return lazy;
}

std::string LazyTensor::to_string() const {
  const Node& n = node();
  return fmt::format("LazyTensor(shape={}, dtype={}, device={}, {})", n.shape().to_string(), name(n.dtype()),
                     n.device().to_string(), is_evaluated() ? "evaluated" : "lazy");
}

}  // namespace caldera
