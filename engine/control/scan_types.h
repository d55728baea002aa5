// ScanTurn, ScanBody, ScanOptions: what a scan is given and what it gives.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Holds what a turn of a scan gives: the carries of the next turn, what is stacked, and what is listed. A
/// scan gives the last carries, the stacked tensors with a new first axis, and the listed ones each by
/// itself: number k of turn t is listed[k * turns + t].
struct ScanTurn {
  std::vector<LazyTensor> carry;
  std::vector<LazyTensor> stacked = {};
  std::vector<LazyTensor> listed = {};
};

/// A turn, given its carries and its slices of the tensors that are gone through.
using ScanBody =
    std::function<ScanTurn(std::span<const LazyTensor> carry, std::span<const LazyTensor> slices)>;

struct ScanOptions {
  std::int64_t turns = -1;     ///< where there are no tensors to go through; otherwise their first extent
  bool reverse = false;        ///< the last slices first; results stay in the order of the slices
  std::int64_t snapshots = 0;  ///< for gradients: see scan()
  /// Further tensors to go through, which are not stacked: of each list, one tensor a turn, where it is. A
  /// turn gets them behind its slices. The tensors of a list have one shape and type.
  std::vector<std::vector<LazyTensor>> lists = {};
};

}  // namespace caldera
