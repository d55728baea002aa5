// Counts of elements that have a value, or are in an interval. Part of ops/ops.h.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "engine/graph/lazy_tensor.h"

namespace caldera {

struct BincountOptions {
  LazyTensor weights = {};     // x's shape: what each element counts; undefined: 1
  std::int64_t minlength = 0;  // of the result at least
  /// Is the result's exactly: larger and negative elements are dropped, and nothing is computed yet, so that
  /// it may stand in compiled and mapped functions.
  std::optional<std::int64_t> length = {};
};
/// Counts how often each of 0, 1, ... is an element of the integers x, of one axis: i32, or the sums of their
/// weights in the type of those. Without a length the largest element is computed and read at the call, which
/// waits for it and throws ValueError for a negative one.
LazyTensor bincount(const LazyTensor& x, const BincountOptions& options = {});

/// Counts the elements in each of `bins` intervals of one width from `low` to `high`, the last of them with
/// its end; those outside, and NaN, are not counted. Where both are equal they are the least and the largest
/// element, or 1 to either side of it where that is one. It has x's type, which is floating. ValueError
/// unless bins > 0 and low <= high, both finite.
LazyTensor histc(const LazyTensor& x, std::int64_t bins = 100, double low = 0, double high = 0);

struct HistogramOptions {
  std::optional<std::pair<double, double>> range = {};  // by default from the least to the largest element
  LazyTensor weight = {};                               // x's shape: what each element counts
  bool density = false;                                 // divide by the sum and the widths: the integral is 1
};
struct HistogramResult {
  LazyTensor hist;
  LazyTensor bin_edges;  // one more than there are bins
};
/// histc(), and where the bins begin and end (torch.histogram); one element has a bin of 1/2 to either side.
HistogramResult histogram(const LazyTensor& x, std::int64_t bins, const HistogramOptions& options = {});
/// Counts the elements in each interval between neighbours of ascending edges, the last of them with its
/// end. ShapeError unless there are two edges or more along one axis; ValueError for a range.
HistogramResult histogram(const LazyTensor& x, const LazyTensor& bin_edges,
                          const HistogramOptions& options = {});

}  // namespace caldera
