// Rows that are sorted side by side: each lane of a register holds an element of another row, and a network
// of exchanges puts all of them in order without a branch.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/device/cpu/host/scratch.h"
#include "engine/device/cpu/sort/key_ops.h"

namespace caldera::cpu {

/// Batcher's merge exchange for n elements (Knuth, 5.2.2, algorithm M).
std::vector<Exchange> merge_exchange(std::int64_t n);

/// Many rows of one form.
struct SortedRows {
  KeyRow row;                   // the first one
  std::int64_t row_stride = 0;  // elements from one row to the next
  std::int64_t length = 0;
  std::int64_t first = 0, count = 0;  // places in order whose positions are written
  std::int32_t* out = nullptr;
  std::int64_t out_stride = 0;
};

/// Says whether rows of `length` elements of a type are worth a network.
bool suits_network(DType of, std::int64_t length, std::int64_t last);

/// Sorts rows [begin, end) with the network of their length. `scratch` is the calling thread's.
void order_short_rows(const SortedRows& rows, const std::vector<Exchange>& network, std::int64_t begin,
                      std::int64_t end, Scratch& scratch);

}  // namespace caldera::cpu
