// Largest elements of windows that adjoin: whose stride is their extent, without margins. Private to ops/.
#pragma once

#include "ops/spatial/large_windows.h"
#include "ops/spatial/windows.h"

namespace caldera::windows {

/// Says whether windows adjoin and are of more than a few elements, and int32 counts those of a channel.
bool are_adjoining(const LazyTensor& x, const Windows& windows);

/// Returns the largest element of each window, NaN if one is, and with `places` where in its channel it is
/// (int32, undefined otherwise); of ties the first in row-major order. Not to be differentiated.
///
/// One reduction for each spatial axis, the outermost first: that one combines whole rows.
LargestOfWindows adjoining_maxima(const LazyTensor& x, const Windows& windows, bool places);

}  // namespace caldera::windows
