#include "training/data/batch.h"

#include <algorithm>
#include <cstddef>

namespace caldera {

std::int64_t Batch::counted() const {
  return std::ranges::count_if(weights, [](float w) { return w != 0.0F; });
}

Batch joined(std::span<const Batch> batches) {
  if (batches.size() == 1) return batches.front();
  Batch whole;
  for (const Batch& batch : batches) {
    whole.seq_len = std::max(whole.seq_len, batch.seq_len);
    whole.sequences_per_example = batch.sequences_per_example;
  }
  const auto append_rows = [&](auto& to, const auto& from, const Batch& batch) {
    for (std::int64_t row = 0; row < batch.batch_size; ++row) {
      const auto begin = from.begin() + row * batch.seq_len;
      to.insert(to.end(), begin, begin + batch.seq_len);
      to.resize(to.size() + static_cast<std::size_t>(whole.seq_len - batch.seq_len));
    }
  };
  const auto append = [](auto& to, const auto& from) { to.insert(to.end(), from.begin(), from.end()); };
  for (const Batch& batch : batches) {
    append_rows(whole.inputs, batch.inputs, batch);
    append_rows(whole.targets, batch.targets, batch);
    append_rows(whole.weights, batch.weights, batch);
    append(whole.labels, batch.labels);
    append(whole.data, batch.data);
    append(whole.lengths, batch.lengths);
    whole.batch_size += batch.batch_size;
    whole.tokens += batch.tokens;
  }
  return whole;
}

}  // namespace caldera
