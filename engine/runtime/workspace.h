// Workspace: what scheduling works with, kept from one evaluation to the next. Internal to the runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/runtime/capture/graph_key.h"
#include "engine/runtime/capture/history_choice.h"
#include "engine/runtime/job.h"

namespace caldera {

/// An output's place, and what becomes of its history.
struct SettledOutput {
  Node* node = nullptr;
  Value value;
  Job* job = nullptr;
  bool keeps = false;
  bool has_origins = false;
  std::uint32_t depth = 0;  // of its history
  bool is_optional = false;
};

/// Holds the lists of the evaluation that is being scheduled: most are small, and to make lists and drop them
/// would be a good part of what they cost. Under graph_mutex().
struct Workspace {
  std::vector<GraphKey> captures;  // one a device, as many as there ever were at once
  std::size_t used = 0;
  std::vector<SettledOutput> outputs;
  std::vector<Node*> passed_by;  // that the program holds, and that are computed, but not for keeps
  std::vector<NodePtr> ended;    // of earlier evaluations, whose history ends
  std::vector<std::pair<Job*, Node*>> donors;
  std::vector<Node*> cuts;
  HistoryChoice choice;

  GraphKey& capture_on(Device device) {
    for (std::size_t i = 0; i < used; ++i) {
      if (captures[i].device == device) return captures[i];
    }
    if (used == captures.size()) captures.emplace_back();
    captures[used].reset(device);
    return captures[used++];
  }
  /// Ends an attempt: makes it empty. A huge graph's lists are not worth keeping.
  void finish();
};

/// Returns the only one there is. Under graph_mutex().
Workspace& workspace();

}  // namespace caldera
