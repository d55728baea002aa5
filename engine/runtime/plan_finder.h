// PlanFinder: the executables of an evaluation's graphs, found in the cache or made. Internal to the runtime.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/hash.h"
#include "engine/device/backend.h"
#include "engine/graph/node.h"
#include "engine/runtime/capture/graph_key.h"
#include "engine/runtime/devices.h"

namespace caldera {

/// Compiles the graph as it would be for an evaluation. Throws what compilation throws, and DTypeError or
/// ValueError for what the device cannot evaluate.
std::shared_ptr<const Plan> make_plan(const Program& program, const Backend& backend);

/// The executable of `program`, whose structure (GraphKey::hash) is known: cached, or made by this thread or
/// another that makes it already. The nodes that the program names must live meanwhile. Not under
/// graph_mutex(). Throws what make_plan throws.
std::shared_ptr<Executable> find_executable(const Hash128& structure, const Program& program,
                                            const OpenDevice& target);

/// Graphs are looked at under graph_mutex(), and compiled without it, so that others can go on: who gets no
/// executable lets the mutex go, calls make(), and looks at the graph again, which may have changed.
class PlanFinder {
 public:
  /// Under graph_mutex(). Null: it has to be made first. Its optional outputs are what the plan stores of
  /// what the graph has as `wanted`. Graphs that differ in that alone, in values that no plan of them stores,
  /// have one plan.
  std::shared_ptr<Executable> find(const GraphKey& c, const std::shared_ptr<OpenDevice>& target);
  bool has_to_make() const { return wanted_.has_value(); }
  /// Without graph_mutex(). Makes what find() missed, unless another thread does: then waits for that.
  void make();

 private:
  struct Wanted {
    Hash128 key;
    Program program;
    std::vector<NodePtr> nodes;  // that the program names
    std::shared_ptr<OpenDevice> target;
  };

  /// Null where there is none among those that this evaluation has made or met.
  std::shared_ptr<Executable> known(const Hash128& key) const;

  std::optional<Wanted> wanted_;
  std::vector<std::pair<Hash128, std::shared_ptr<Executable>>> known_;
};

}  // namespace caldera
