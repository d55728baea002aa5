// The longest batch of a dataset: what does not fit the memory is known before the first step.
#pragma once

#include <cstdint>

#include "training/data/batch_iterator.h"
#include "training/data/dataset.h"

namespace caldera {

/// A batch of `batch_size` rows, each of the dataset's longest example; with packing the same, packed. The
/// dataset must not be empty.
Batch longest_batch(const TokenDataset& data, std::int64_t batch_size, Packing packing);

}  // namespace caldera
