// scan and for_loop: loops whose count of turns is known when the graph is built.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/control/scan_types.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// Runs `body` for each slice along the first axis of `over`, from the carries `init` on. It is one node,
/// whose body is planned once, however many turns there are; memory that a turn needs is that of one turn.
/// Listed tensors (ScanOptions::lists) are read where they are, and their gradients are listed too.
///
/// A carry keeps its shape and dtype (ShapeError, DTypeError). What `body` captures is the same in every
/// turn, and differentiated like an argument. `body` is called once, on stand-ins: evaluating what depends on
/// them is a ValueError, as is a body without a carry. `over` and lists of different lengths and a list of
/// different shapes are a ShapeError, one of different types a DTypeError.
///
/// Gradients in reverse keep the carries of all turns, and compute the inside of a turn again from them. With
/// snapshots s > 0 they keep those of s turns at a time and compute the others again, as few as possible
/// (binomial checkpointing, Griewank and Walther 2000): r n - C(s + r, s + 1) turns more for n turns, where r
/// is the least with C(s + r, s) >= n.
ScanTurn scan(const ScanBody& body, std::span<const LazyTensor> init, std::span<const LazyTensor> over,
              const ScanOptions& options = {});

struct ForLoopOptions {
  std::int64_t snapshots = 0;  ///< as ScanOptions::snapshots
};

/// Runs `body(i, x)` for i = 0 ... turns - 1, a number of type i64, each with what the turn before gave.
/// Throws as scan.
LazyTensor for_loop(std::int64_t turns,
                    const std::function<LazyTensor(const LazyTensor& i, const LazyTensor& x)>& body,
                    const LazyTensor& init, ForLoopOptions options = {});
std::vector<LazyTensor> for_loop(
    std::int64_t turns,
    const std::function<std::vector<LazyTensor>(const LazyTensor& i, std::span<const LazyTensor> x)>& body,
    std::span<const LazyTensor> init, ForLoopOptions options = {});

}  // namespace caldera
