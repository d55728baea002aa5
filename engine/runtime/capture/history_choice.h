// Which values keep their history, and which inputs may be overwritten. Internal to the runtime.
//
// A value keeps its history, so that it can be differentiated after it was computed, where that costs little:
//
// - where nothing that the program holds could be differentiated with respect to, there is none to keep;
// - inputs that the program holds are there anyway;
// - host data that nobody else holds (a batch made on the way) is kept along with the value, if it is small
//   or the value is a single number, as losses are;
// - but a computed value that nobody holds any more, and that a new one of as many elements comes from point
//   by point, has been replaced, as a parameter is by its update: it gives its memory away, and every history
//   that needs it ends;
// - and a chain of values that were evaluated one after the other, each computed from the one before, is not
//   kept longer than kDeepestHistory: it is a state that goes on.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/small_allocator.h"
#include "engine/plan/plan.h"
#include "engine/runtime/capture/graph_key.h"

namespace caldera {

/// So many values evaluated one after the other, each computed from the one before.
inline constexpr std::uint32_t kDeepestHistory = 128;

struct HistoryChoice {
  SmallList<std::int32_t> donors;  // for each output: the data leaf whose memory it takes, or -1
  SmallList<bool> keeps;           // for each output: its history
  SmallList<bool> has_origins;     // for each output: something may be differentiated with respect to
  std::vector<NodePtr> ended;      // values of earlier evaluations whose history ends
  std::vector<NodePtr> others;     // that were looked at: to be released after the mutex
  std::uint64_t kept_bytes = 0;    // of data that nobody else holds
  std::uint32_t depth = 0;         // of the histories that are kept (Node::keep_history)

  /// Makes it empty, with its memory.
  void clear() {
    donors.clear();
    keeps.clear();
    has_origins.clear();
    ended.clear();
    others.clear();
    kept_bytes = 0;
    depth = 0;
  }
};

/// Chooses for a capture, whose walk is the latest: replaces what `choice` holds. `plan` says which outputs
/// may take the memory of an input; null where none may. Under graph_mutex(), before any job holds the
/// storages.
void choose_histories(const GraphKey& c, const Plan* plan, HistoryChoice& choice);

}  // namespace caldera
