// Histories: what values that were computed still know of how, so that they can be differentiated.
//
// A history keeps nodes alive, and with them the data that they were computed from and nobody else holds. So
// histories are kept within bounds: when there are too many, the older half is given up. Which values keep
// one at all is decided when they are evaluated (engine/runtime/capture/history_choice.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/graph/node.h"

namespace caldera {

/// Bounds of what is kept over all devices: values, nodes, and bytes of data that nothing but histories keeps
/// alive. The history of what was computed last stays, however large it is.
inline constexpr std::size_t kMostHistories = 1024;
inline constexpr std::size_t kMostHistoryNodes = std::size_t{1} << 18;
inline constexpr std::uint64_t kMostHistoryBytes = std::uint64_t{256} << 20;

/// Returns what is kept now. Thread-safe.
inline HistoryStats history_stats() { return HistoryList::stats(); }

/// While one lives, evaluations by this thread keep every history, and no thread gives up any for being old:
/// a transform runs the user's function, which may evaluate what is differentiated afterwards.
class KeepHistories {
 public:
  KeepHistories();
  ~KeepHistories();
  KeepHistories(const KeepHistories&) = delete;
  KeepHistories& operator=(const KeepHistories&) = delete;

  /// Whether one lives on this thread.
  static bool is_active();
};

/// The nodes that keep theirs, the oldest first, each with an owner more. Under graph_mutex().
std::vector<NodePtr> kept_histories();
/// Under graph_mutex(): gives up the older half where there are too many, and adds what they held to `bin`,
/// to be released after the mutex.
void bound_histories(std::vector<NodePtr>& bin);
/// Under graph_mutex(): makes lazy again what was computed though nobody asked for it
/// (Plan::optional_outputs), and is held by no program any longer: a history alone is no reason to keep its
/// memory. Adds the nodes to `bin`, to be released after the mutex.
void drop_loose_values(std::vector<NodePtr>& bin);
/// Gives up all, unless a transform needs them, for the memory that they keep. True if there were any. Takes
/// graph_mutex().
bool give_up_histories();

}  // namespace caldera
