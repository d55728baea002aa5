// Snapshot: the part of a graph that a transform works on, frozen so that it needs no mutex. Internal to the
// transforms.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

struct Snapshot {
  struct Entry {
    LazyTensor tensor;
    std::vector<std::uint32_t> inputs;  // none for what is older than every target: it depends on none
    bool is_target = false;             // one of the tensors that the transform is with respect to
    bool is_cut = false;
    bool depends = false;  // reached from a target
  };
  std::vector<Entry> entries;  // topological
  std::vector<std::uint32_t> outputs;
  std::vector<std::int64_t> targets;  // position of each target, -1 if no output reaches it
  std::vector<LazyTensor> target_tensors;

  /// Whether an input of the entry depends on a target.
  bool has_path(const Entry& entry) const;
  std::vector<LazyTensor> inputs_of(const Entry& entry) const;
};

/// Whether a walk goes on behind a target, to other targets.
enum class Targets : std::uint8_t { are_passed, end_walk };

/// Takes what is between `targets` and `outputs`. Iterative. Takes graph_mutex().
Snapshot take_snapshot(std::span<const LazyTensor> outputs, std::span<const LazyTensor> targets,
                       Targets walk = Targets::are_passed);

/// Marks what depends on a target through edges that carry a gradient. A value on the way to the outputs
/// whose history has ended, and which has come from a target (see engine/graph/history/origins.h), is a
/// GradientError naming `transform`. Takes graph_mutex().
void mark_differentiable(Snapshot& s, std::string_view transform);

/// Floating, and of an operation whose derivative is not zero by nature.
bool carries_gradient(const LazyTensor& x);

}  // namespace caldera
