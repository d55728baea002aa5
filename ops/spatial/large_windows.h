// Sums and largest elements of large windows: along one axis after the other, from those of windows of 1, 2,
// 4 ... elements, so that a window of k elements takes about log2(k) passes and not k.
#pragma once

#include "ops/spatial/windows.h"

namespace caldera::windows {

/// Says whether windows have so many elements that one pass over them, an element of each at a time, is no
/// longer the fastest.
bool are_large(const Windows& windows);

/// Sums the elements of each window of a tensor that is padded already.
LazyTensor large_sums(const LazyTensor& padded, const Windows& windows);

/// Pairs elements with the numbers that go with them, which are undefined where none are wanted, and says
/// which are no margin's; undefined where none is.
struct LargestOfWindows {
  LazyTensor values, places, are_elements;
};
/// Returns the largest element of each window, NaN if one is; of ties the first in row-major order.
/// `is_element` says which elements of `padded` are no margin's, (1, 1, spatial axes ...); it is undefined
/// where all are. A margin's is chosen only where a window has no other. `places` is a number for each
/// element, of the same shape, which goes with it; undefined where none is wanted.
LargestOfWindows large_maxima(const LazyTensor& padded, const LazyTensor& is_element,
                              const LazyTensor& places, const Windows& windows);

}  // namespace caldera::windows
