// What ranks do together with tensors, and the gradients: those of the sum of all ranks' outputs, with which
// each of these maps is the transpose of another.
#include <fmt/format.h>

#include "engine/base/error.h"
#include "engine/distributed/message_node.h"
#include "engine/graph/jvp.h"
#include "engine/graph/vjp.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/node_builder.h"
#include "ops/core/views.h"

namespace caldera::distributed {
namespace {

// ---- rules ----

const Group& group_of(const LazyTensor& message) { return traits_of(message).group; }

/// The sum on rank `root`, and 0 on the others: what a broadcast is the transpose of.
LazyTensor sum_to(const LazyTensor& x, int root, const Group& group);
/// Sends x, and is 0: what a receive is the transpose of.
LazyTensor send_away(const LazyTensor& x, int to, const Group& group);

void sum_vjp(VjpContext& c) {
  c.grads[0] = all_sum(c.cotangent, group_of(c.output), traits_of(c.output).order);
}
void sum_jvp(JvpContext& c) {
  c.tangent = all_sum(c.tangents[0], group_of(c.output), traits_of(c.output).order);
}

/// 1 where this rank has the extreme, over the number of ranks that do.
LazyTensor share_of(const LazyTensor& x, const LazyTensor& extreme) {
  const LazyTensor has = astype(equal(x, extreme), x.dtype());
  return has / all_sum(has, group_of(extreme));
}
void extreme_vjp(VjpContext& c) {
  c.grads[0] = all_sum(c.cotangent, group_of(c.output)) * share_of(c.inputs[0], c.output);
}
void extreme_jvp(JvpContext& c) {
  c.tangent = all_sum(c.tangents[0] * share_of(c.inputs[0], c.output), group_of(c.output));
}

void gather_vjp(VjpContext& c) {
  c.grads[0] = reshape(reduce_scatter(c.cotangent, group_of(c.output)), c.inputs[0].shape());
}
void gather_jvp(JvpContext& c) { c.tangent = all_gather(c.tangents[0], group_of(c.output)); }

void scatter_vjp(VjpContext& c) { c.grads[0] = all_gather(c.cotangent, group_of(c.output)); }
void scatter_jvp(JvpContext& c) { c.tangent = reduce_scatter(c.tangents[0], group_of(c.output)); }

void broadcast_vjp(VjpContext& c) {
  c.grads[0] = sum_to(c.cotangent, traits_of(c.output).peer, group_of(c.output));
}
void broadcast_jvp(JvpContext& c) {
  c.tangent = broadcast(c.tangents[0], traits_of(c.output).peer, group_of(c.output));
}

void send_vjp(VjpContext& c) {
  c.grads[0] = c.cotangent + recv_like(c.cotangent, traits_of(c.output).peer, group_of(c.output));
}
void send_jvp(JvpContext& c) {
  c.tangent = send(c.tangents[0], traits_of(c.output).peer, group_of(c.output));
}
void receive_vjp(VjpContext& c) {
  c.grads[0] = send_away(c.cotangent, traits_of(c.output).peer, group_of(c.output));
}
void receive_jvp(JvpContext& c) {
  c.tangent = recv_like(c.tangents[0], traits_of(c.output).peer, group_of(c.output));
}

void sum_to_vjp(VjpContext& c) {
  c.grads[0] = broadcast(c.cotangent, traits_of(c.output).peer, group_of(c.output));
}
void sum_to_jvp(JvpContext& c) {
  c.tangent = sum_to(c.tangents[0], traits_of(c.output).peer, group_of(c.output));
}
void send_away_vjp(VjpContext& c) {
  c.grads[0] = recv_like(c.cotangent, traits_of(c.output).peer, group_of(c.output));
}
void send_away_jvp(JvpContext& c) {
  c.tangent = send_away(c.tangents[0], traits_of(c.output).peer, group_of(c.output));
}

const OpDef kSumTo{.name = "sum_to", .kind = OpClass::control, .vjp = sum_to_vjp, .jvp = sum_to_jvp};
const OpDef kSendAway{
    .name = "send_away", .kind = OpClass::control, .vjp = send_away_vjp, .jvp = send_away_jvp};
const OpDef kAllSum{.name = "all_sum", .kind = OpClass::control, .vjp = sum_vjp, .jvp = sum_jvp};
const OpDef kAllMax{.name = "all_max", .kind = OpClass::control, .vjp = extreme_vjp, .jvp = extreme_jvp};
const OpDef kAllMin{.name = "all_min", .kind = OpClass::control, .vjp = extreme_vjp, .jvp = extreme_jvp};
const OpDef kAllGather{.name = "all_gather", .kind = OpClass::control, .vjp = gather_vjp, .jvp = gather_jvp};
const OpDef kReduceScatter{
    .name = "reduce_scatter", .kind = OpClass::control, .vjp = scatter_vjp, .jvp = scatter_jvp};
const OpDef kBroadcast{
    .name = "broadcast", .kind = OpClass::control, .vjp = broadcast_vjp, .jvp = broadcast_jvp};
const OpDef kSend{.name = "send", .kind = OpClass::control, .vjp = send_vjp, .jvp = send_jvp};
const OpDef kReceive{.name = "recv", .kind = OpClass::control, .vjp = receive_vjp, .jvp = receive_jvp};

LazyTensor sum_to(const LazyTensor& x, int root, const Group& group) {
  return message_node(kSumTo, {.kind = MessageKind::sum_to, .peer = root, .group = group}, x, x.shape(),
                      x.dtype());
}

LazyTensor send_away(const LazyTensor& x, int to, const Group& group) {
  return message_node(kSendAway, {.kind = MessageKind::send_away, .peer = to, .group = group}, x, x.shape(),
                      x.dtype());
}

// ---- checks ----

void check_rank(const char* op, int rank, const Group& group) {
  if (rank < 0 || rank >= group.size())
    throw ValueError(fmt::format("{}: rank {} of a group of {}: give one of 0 to {}", op, rank, group.size(),
                                 group.size() - 1));
}

void check_other(const char* op, int rank, const Group& group) {
  check_rank(op, rank, group);
  if (rank == group.rank())
    throw ValueError(fmt::format("{}: rank {} is this one: a rank has what it would send itself", op, rank));
}

LazyTensor extreme(const OpDef& op, MessageKind kind, const LazyTensor& x, const Group& group) {
  if (group.size() == 1) return x;
  return message_node(op, {.kind = kind, .group = group}, x, x.shape(), x.dtype());
}

}  // namespace

LazyTensor all_sum(const LazyTensor& x, const Group& group, SumOrder order) {
  const bool is_narrow = !is_floating(x.dtype()) && size_of(x.dtype()) < size_of(DType::i32);
  LazyTensor summed = is_narrow ? astype(x, DType::i32) : x;
  if (group.size() == 1) return summed;
  return message_node(kAllSum, {.kind = MessageKind::all_sum, .order = order, .group = group}, summed,
                      summed.shape(), summed.dtype());
}

LazyTensor all_max(const LazyTensor& x, const Group& group) {
  return extreme(kAllMax, MessageKind::all_max, x, group);
}
LazyTensor all_min(const LazyTensor& x, const Group& group) {
  return extreme(kAllMin, MessageKind::all_min, x, group);
}

LazyTensor all_gather(const LazyTensor& x, const Group& group) {
  LazyTensor rows = x.shape().rank() == 0 ? reshape(x, {1}) : x;
  if (group.size() == 1) return rows;
  Shape shape = rows.shape();
  shape[0] *= group.size();
  return message_node(kAllGather, {.kind = MessageKind::all_gather, .group = group}, rows, shape, x.dtype());
}

LazyTensor reduce_scatter(const LazyTensor& x, const Group& group) {
  if (x.shape().rank() == 0 || x.shape(0) % group.size() != 0)
    throw ShapeError(fmt::format("reduce_scatter: the first axis of {} cannot be divided among {} ranks",
                                 x.shape().to_string(), group.size()));
  const bool is_narrow = !is_floating(x.dtype()) && size_of(x.dtype()) < size_of(DType::i32);
  LazyTensor summed = is_narrow ? astype(x, DType::i32) : x;
  if (group.size() == 1) return summed;
  Shape shape = x.shape();
  shape[0] /= group.size();
  return message_node(kReduceScatter, {.kind = MessageKind::reduce_scatter, .group = group}, summed, shape,
                      summed.dtype());
}

LazyTensor broadcast(const LazyTensor& x, int root, const Group& group) {
  check_rank("broadcast", root, group);
  if (group.size() == 1) return x;
  return message_node(kBroadcast, {.kind = MessageKind::broadcast, .peer = root, .group = group}, x,
                      x.shape(), x.dtype());
}

LazyTensor send(const LazyTensor& x, int to, const Group& group) {
  check_other("send", to, group);
  return message_node(kSend, {.kind = MessageKind::send, .peer = to, .group = group}, x, x.shape(),
                      x.dtype());
}

LazyTensor recv_like(const LazyTensor& x, int from, const Group& group) {
  check_other("recv", from, group);
  return message_node(kReceive, {.kind = MessageKind::receive, .peer = from, .group = group}, x, x.shape(),
                      x.dtype());
}

LazyTensor recv(const Shape& shape, DType dtype, int from, const Group& group, Device device) {
  check_other("recv", from, group);
  return message_node(kReceive, {.kind = MessageKind::receive, .peer = from, .group = group},
                      LazyTensor::zeros({1}, dtype, device), shape, dtype);
}

}  // namespace caldera::distributed
