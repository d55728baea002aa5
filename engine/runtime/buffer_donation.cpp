#include "engine/runtime/buffer_donation.h"

#include <atomic>
#include <unordered_map>

#include "engine/runtime/runtime.h"

namespace caldera {
namespace {

std::atomic<std::uint64_t> donated_buffers{0};
std::atomic<std::uint64_t> donated_bytes{0};

/// Which nodes of the capture go away once its outputs have values. An output drops its inputs, unless it is
/// traced; a node whose owners were all such inputs is destroyed and drops its own. The owners of a node are
/// counted by its references. A count equal to those found here cannot grow: another owner could only come by
/// the node through one of them, and nobody walks graphs while the mutex is held.
class Dying {
 public:
  explicit Dying(const GraphKey& c)
      : order_(c.walk.order), released_(order_.size(), 0), is_dying_(order_.size(), false) {
    std::vector<bool> is_output(order_.size(), false);
    for (const Node* output : c.outputs) is_output[output->walk_index] = true;
    for (const Node* output : c.outputs) {
      if (!output->is_traced()) droppers_.push_back(output);
    }
    while (!droppers_.empty()) {
      const Node& node = *droppers_.back();
      droppers_.pop_back();
      for (const NodePtr& input : node.inputs()) release(*input, is_output);
    }
  }
  bool operator[](std::size_t position) const { return is_dying_[position]; }

 private:
  /// One of the node's owners lets go of it.
  void release(const Node& node, const std::vector<bool>& is_output) {
    const std::uint32_t at = node.walk_index;
    if (at < order_.size() && order_[at] == &node) {
      if (++released_[at] != node.ref_count() || is_output[at]) return;
      is_dying_[at] = true;
      // What lies behind a leaf with a value is no part of the capture.
      if (!node.has_value()) droppers_.push_back(&node);
    } else if (node.is_call() && ++released_calls_[&node] == node.ref_count()) {
      droppers_.push_back(&node);
    }
  }

  const std::vector<Node*>& order_;
  std::vector<std::uint32_t> released_;  // by position
  std::vector<bool> is_dying_;
  std::unordered_map<const Node*, std::uint32_t> released_calls_;  // no part of a capture, but owners in it
  std::vector<const Node*> droppers_;                              // let go of their inputs
};

}  // namespace

std::vector<std::int32_t> find_donors(const GraphKey& c, const Plan& plan) {
  std::vector<std::int32_t> donors(c.outputs.size(), -1);
  std::vector<bool> given(c.data.size(), false);
  const Dying dying(c);
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
