// The origins (engine/graph/history/origins.h) of results that were computed at once, with no nodes between
// them and the arguments of the call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/graph/origins_walk.h"

namespace caldera {

/// Says what a result of a function comes from: arguments, by number, and what was captured.
struct ResultOrigins {
  std::vector<std::uint32_t> arguments;
  OriginsPtr captured;
};

/// Results by what they come from: those of one group from the same.
struct OriginGroups {
  std::vector<ResultOrigins> groups;
  std::vector<std::int32_t> group_of;  // of each result; -1: nothing that gradients would go to
};

/// Finds the origins of `results`, which still have their inputs, where `stand_ins` stand for the arguments.
/// Under graph_mutex().
OriginGroups trace_origins(std::span<Node* const> results, std::span<const Node* const> stand_ins);

/// Holds what the results of one call came from. Asked of a value behind which no nodes were kept, so its
/// time is in proportion to the arguments; of those that were computed and can still be differentiated, also
/// to their histories. Under graph_mutex(), for as long as that is held.
class CallOrigins {
 public:
  /// `arguments` have values, or are numbers. Those that `are_gone` (by number; empty: none) will have no
  /// value after the call: nobody asks for their gradients, only for those of what they came from.
  CallOrigins(std::span<Node* const> arguments, const std::vector<bool>& are_gone)
      : arguments_(arguments), are_gone_(are_gone) {}

  /// Null where the result came from nothing that may be differentiated with respect to. The list shares what
  /// it can with those of the arguments, so that in a long chain of calls whose results are all kept each
  /// remembers little.
  OriginsPtr of(const ResultOrigins& result);

 private:
  const Origins* earlier_of(std::size_t argument);

  std::span<Node* const> arguments_;
  const std::vector<bool>& are_gone_;
  std::vector<OriginTag*> tags_;         // scratch of of()
  std::vector<const Origins*> earlier_;  // that, too
  std::vector<OriginsPtr> histories_;    // of arguments that keep theirs; empty until one is met
};

}  // namespace caldera
