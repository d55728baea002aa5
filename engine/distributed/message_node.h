// Nodes of the graph that are messages. Internal to engine/distributed.
#pragma once

#include <cstdint>

#include "engine/distributed/distributed.h"
#include "engine/graph/op.h"

namespace caldera::distributed {

enum class MessageKind : std::uint8_t {
  all_sum,
  all_max,
  all_min,
  all_gather,
  reduce_scatter,
  broadcast,
  sum_to,  // the sum on one rank, 0 on the others
  send,
  send_away,  // 0 is left
  receive
};

/// Says what a message is besides the types of its tensors.
struct MessageTraits {
  MessageKind kind = MessageKind::all_sum;
  SumOrder order = SumOrder::fixed;
  int peer = 0;  ///< root, receiver or sender
  Group group;
};

/// Makes the node of a message of x, of which `shape` and `dtype` come.
LazyTensor message_node(const OpDef& op, const MessageTraits& traits, const LazyTensor& x, const Shape& shape,
                        DType dtype);
/// The traits of a node that message_node made.
const MessageTraits& traits_of(const LazyTensor& message);

}  // namespace caldera::distributed
