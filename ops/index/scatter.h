// Elements read and written at positions that tensors give. Part of ops/ops.h.
//
// Positions are integers. One outside of its axis, as are negative ones, gives NaN (or 0) where it is read,
// and what is written there is dropped. Every result is the same on every device and at every run.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

/// base with updates at `indices` along `axis`, shapes as of scatter_add: the updates' shape is base's with
/// the shape of `indices` instead of the axis. Of updates with one index the last is left (in row-major order
/// of the indices); gradients pass to base where nothing was written, and to what is left.
LazyTensor scatter(const LazyTensor& base, const LazyTensor& indices, const LazyTensor& updates,
                   AxisIndex axis = 0);
/// The largest of base's element and the updates that come to it, NaN if any is. The gradient is split
/// equally among those that attain it, base's element included (scatter_reduce of PyTorch).
LazyTensor scatter_max(const LazyTensor& base, const LazyTensor& indices, const LazyTensor& updates,
                       AxisIndex axis = 0);
LazyTensor scatter_min(const LazyTensor& base, const LazyTensor& indices, const LazyTensor& updates,
                       AxisIndex axis = 0);

/// x[..., indices[..., i, ...], ...]: each position along the other axes has indices of its own. Ranks are
/// equal, and the other axes broadcast. Undoes argsort, and is gather of PyTorch (which does not broadcast).
LazyTensor take_along_axis(const LazyTensor& x, const LazyTensor& indices, AxisIndex axis = -1);
/// base with values where take_along_axis would read; `indices` broadcast to base but along the axis, values
/// to `indices`, and they take base's dtype. Values with one index combine as those of scatter (set), and
/// scatter_add, scatter_max and scatter_min; for booleans add is "any".
LazyTensor put_along_axis(const LazyTensor& base, const LazyTensor& indices, const LazyTensor& values,
                          AxisIndex axis = -1, Scatter how = Scatter::set);

}  // namespace caldera
