#include "engine/runtime/buffer_donation.h"

#include <atomic>

#include "engine/runtime/runtime.h"

namespace caldera {
namespace {

std::atomic<std::uint64_t> donated_buffers{0};
std::atomic<std::uint64_t> donated_bytes{0};

/// Which nodes of the capture go away once its outputs have values. An output drops its inputs, unless it is
/// traced; a node whose owners were all such inputs is destroyed and drops its own. The owners of a node are
/// counted by its references. A count equal to those found here cannot grow: another owner could only come by
/// the node through one of them, and nobody walks graphs while the mutex is held.
std::vector<bool> find_dying(const GraphKey& c) {
  const std::vector<Node*>& order = c.walk.order;
  std::vector<std::uint32_t> released(order.size(), 0);
  std::vector<bool> is_output(order.size(), false);
  for (const Node* output : c.outputs) is_output[output->walk_index] = true;
  std::vector<bool> dying(order.size(), false);
  for (std::size_t i = order.size(); i-- > 0;) {
    const Node& node = *order[i];
    dying[i] = !is_output[i] && node.ref_count() == released[i];
    // What lies behind a leaf with a value is no part of the capture.
    const bool drops_inputs = is_output[i] ? !node.is_traced() : dying[i] && !node.has_value();
    if (!drops_inputs) continue;
    for (const NodePtr& input : node.inputs()) {
      // The inputs of a call (engine/autodiff/opaque_call.h) need not be in the capture.
      const std::uint32_t at = input->walk_index;
      if (at < order.size() && order[at] == input.get()) ++released[at];
    }
  }
  return dying;
}

}  // namespace

std::vector<std::int32_t> find_donors(const GraphKey& c, const Plan& plan) {
  std::vector<std::int32_t> donors(c.outputs.size(), -1);
  std::vector<bool> given(c.data.size(), false);
  const std::vector<bool> dying = find_dying(c);
  for (const Donation& donation : plan.donations) {
    const auto output = static_cast<std::size_t>(donation.output - plan.input_count);
    const auto input = static_cast<std::size_t>(donation.input);
    if (donors[output] >= 0 || given[input] || !dying[c.data[input]->walk_index]) continue;
    const Value& value = c.data[input]->value();
    const bool fits = value.byte_offset == 0 && value.storage->bytes() == bytes_of(*c.outputs[output]);
    if (!fits || value.storage.use_count() != 1) continue;
    donors[output] = donation.input;
    given[input] = true;
    donated_buffers.fetch_add(1, std::memory_order_relaxed);
    donated_bytes.fetch_add(value.storage->bytes(), std::memory_order_relaxed);
  }
  // use_count() orders nothing: what former owners of the storage did with it comes before what the job does.
  std::atomic_thread_fence(std::memory_order_acquire);
  return donors;
}

DonationStats donation_stats() {
  return {.buffers = donated_buffers.load(std::memory_order_relaxed),
          .bytes = donated_bytes.load(std::memory_order_relaxed)};
}

}  // namespace caldera
