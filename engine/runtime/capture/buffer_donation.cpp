#include "engine/runtime/capture/buffer_donation.h"

#include <atomic>

namespace caldera {
std::vector<std::int32_t> find_donors(const GraphKey& c, const Plan& plan,
                                      const std::vector<bool>& may_give) {
  std::vector<std::int32_t> donors(c.outputs.size(), -1);
  std::vector<bool> given(c.data.size(), false);
  for (const Donation& donation : plan.donations) {
    const auto output = static_cast<std::size_t>(donation.output - plan.input_count);
    const auto input = static_cast<std::size_t>(donation.input);
    if (donors[output] >= 0 || given[input] || !may_give[c.data[input]->walk_index]) continue;
    const Value& value = c.data[input]->value();
    const bool fits = value.byte_offset == 0 && value.storage->bytes() == bytes_of(*c.outputs[output]);
    if (!fits || value.storage.use_count() != 1) continue;
    donors[output] = donation.input;
    given[input] = true;
  }
  // use_count() orders nothing: what former owners of the storage did with it comes before what the job does.
  std::atomic_thread_fence(std::memory_order_acquire);
  return donors;
}

}  // namespace caldera
