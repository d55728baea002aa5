// Bodies under vmap. Internal to engine/control.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/control/body.h"
#include "engine/graph/call_rule.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// The results of `body` for all examples, given all of its parameters.
std::vector<Batched> mapped_body(const Body& body, std::span<const Batched> parameters);

/// Tells of each result of `body` whether it may differ between the examples, given which of its parameters
/// do.
std::vector<bool> reached(const Body& body, const std::vector<bool>& is_mapped);

/// Marks in `is_mapped`, which tells of each parameter of `body`, those that become mapped within some turn:
/// parameter `first` + i is result i of the turn before, for i < `count`.
void mark_carried(const Body& body, std::vector<bool>& is_mapped, std::size_t first, std::size_t count);

/// Tells which are mapped.
std::vector<bool> which_mapped(std::span<const Batched> values);
/// Says of tensors that those are mapped which `is_mapped`, which may be longer, tells from `first` on.
std::vector<Batched> flagged(std::span<const LazyTensor> values, const std::vector<bool>& is_mapped,
                             std::size_t first = 0);
/// Returns the tensors, with the mapped axis for those of which `is_mapped` tells so from `first` on.
std::vector<LazyTensor> placed(std::span<const Batched> values, const std::vector<bool>& is_mapped,
                               std::int64_t examples, std::size_t first = 0);

/// Returns lists of `turns` tensors each: where some of a list are mapped, with the mapped axis in all of
/// them. Appends to `is_mapped` which lists these are.
std::vector<std::vector<LazyTensor>> placed_lists(std::span<const Batched> listed, std::size_t turns,
                                                  std::int64_t examples, std::vector<bool>& is_mapped);

/// Returns what is stacked along axis 0 or gone through, with that axis in front of the mapped one; and the
/// other way round.
LazyTensor turns_in_front(const Batched& x);
Batched examples_in_front(const LazyTensor& x, bool is_mapped);

/// Returns `a` for the examples that `flags`, one bool for each, names, and `b` for the others.
LazyTensor chosen_by(const LazyTensor& flags, const LazyTensor& a, const LazyTensor& b);

}  // namespace caldera
