// ScanLoop: a scan as the calls in the graph know it. Internal to engine/control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/control/body.h"
#include "engine/control/scan_types.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Holds a scan as its calls share it. Their arguments: the first carries, the tensors gone through, the
/// tensors of the lists, the constants; their values: the last carries, the stacked results, stacked, the
/// carries that each turn began with, and the listed results. The body's are the same, with one tensor of
/// each list.
struct ScanLoop {
  std::string title;
  Body body;
  std::size_t carries = 0;
  std::size_t over = 0;
  std::size_t lists = 0;
  std::size_t stacked = 0;
  std::size_t listed = 0;
  std::int64_t turns = 0;
  bool reverse = false;
  std::int64_t snapshots = 0;

  std::size_t stacked_results() const { return stacked + carries; }
  std::size_t tensors_of_a_list() const { return static_cast<std::size_t>(turns); }
};
using ScanLoopPtr = std::shared_ptr<const ScanLoop>;

/// Returns all values of a call.
std::vector<LazyTensor> scan_results(const ScanLoopPtr& loop, std::span<const LazyTensor> arguments);

/// Holds what a scan gives, and stacked, the carries that its turns began with (none of no turns).
struct AllOfScan {
  ScanTurn turn;
  std::vector<LazyTensor> kept = {};
};
/// Runs a scan whose errors name `title`: see scan().
AllOfScan all_of_scan(std::string title, const ScanBody& body, std::span<const LazyTensor> first,
                      std::span<const LazyTensor> over, const ScanOptions& options);

}  // namespace caldera
