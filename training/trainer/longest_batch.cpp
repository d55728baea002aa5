#include "training/trainer/longest_batch.h"

#include <algorithm>
#include <vector>

namespace caldera {

Batch longest_batch(const TokenDataset& data, std::int64_t batch_size, Packing packing) {
  const auto length = [&](std::int64_t i) {
    std::size_t longest = 0;
    for (std::int64_t which = 0; which < data.sequences_per_example(); ++which)
      longest = std::max(longest, data.tokens(i, which).size());
    return longest;
  };
  std::int64_t longest = 0;
  for (std::int64_t i = 1; i < data.size(); ++i)
    if (length(i) > length(longest)) longest = i;
  const auto rows = static_cast<std::size_t>(batch_size);
  return packing == Packing::none
             ? data.batch(std::vector<std::int64_t>(rows, longest))
             : data.packed_batch(std::vector<std::vector<std::int64_t>>(rows, {longest}));
}

}  // namespace caldera
