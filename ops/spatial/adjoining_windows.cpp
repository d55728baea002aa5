#include "ops/spatial/adjoining_windows.h"

#include <limits>
#include <utility>
#include <vector>

#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/reduce/extrema.h"

namespace caldera::windows {
namespace {

/// Windows of up to so many elements are combined in one pass over all, an element of each at a time.
constexpr std::int64_t kOnePass = 9;
constexpr std::int64_t kMostPlaces = std::numeric_limits<std::int32_t>::max();

/// The elements of adjoining windows in steps: along one spatial axis after the other, the outermost first.
/// Spatial axes are the last ones; vmap puts others ahead.
struct Reduction {
  Spatial kernel, counts;
  int first;  // spatial axis of x

  Reduction(const LazyTensor& x, Spatial of_kernel)
      : kernel(std::move(of_kernel)), first(x.rank() - static_cast<int>(kernel.size())) {
    for (std::size_t i = 0; i < kernel.size(); ++i) counts.push_back(x.shape(axis_of(i)) / kernel[i]);
  }
  int axis_of(std::size_t i) const { return first + static_cast<int>(i); }
  /// x with a spatial axis as one of windows and one, behind it, of their elements.
  LazyTensor split(const LazyTensor& x, std::size_t i) const {
    const int axis = axis_of(i);
    Shape shape = x.shape();
    shape[axis] = counts[i];
    shape.insert(axis + 1, kernel[i]);
    const std::int64_t used = counts[i] * kernel[i];
    return reshape(used == x.shape(axis) ? x : slice(x, axis, 0, used), shape);
  }
  /// The largest elements after each of the axes.
  std::vector<LazyTensor> maxima(const LazyTensor& x) const {
    std::vector<LazyTensor> all;
    for (std::size_t i = 0; i < kernel.size(); ++i)
      all.push_back(max(split(i == 0 ? x : all.back(), i), axis_of(i) + 1));
    return all;
  }
  /// Where the largest elements are in their channel: of all that attain it the least place.
  LazyTensor places(const LazyTensor& x) const {
    const std::vector<LazyTensor> largest = maxima(x);
    LazyTensor place;  // within the axes so far
    for (std::size_t i = 0; i < kernel.size(); ++i) {
      const LazyTensor given = i == 0 ? x : largest[i - 1], candidates = split(given, i);
      const LazyTensor best = expand_dims(largest[i], axis_of(i) + 1);
      const LazyTensor hits = logical_or(candidates == best, isnan(candidates));
      Shape along(Dims::filled(x.rank(), 1));
      along[axis_of(i)] = x.shape(axis_of(i));
      LazyTensor at = iota(along, axis_of(i), DType::i32, x.device());
      if (place.defined()) at = at + place * x.shape(axis_of(i));
      at = split(at, i);
      place = min(where(hits, at, full_like(at, kMostPlaces)), axis_of(i) + 1);
    }
    return place;
  }
};

}  // namespace

bool are_adjoining(const LazyTensor& x, const Windows& windows) {
  std::int64_t elements = 1, window = 1;
  for (std::size_t i = 0; i < windows.kernel.size(); ++i) {
    if (windows.stride[i] != windows.kernel[i] || windows.dilation[i] != 1) return false;
    if (__builtin_mul_overflow(elements, x.shape(static_cast<int>(i) + kLead), &elements)) return false;
    window *= windows.kernel[i];
  }
  return window > kOnePass && elements <= kMostPlaces;
}

LargestOfWindows adjoining_maxima(const LazyTensor& x, const Windows& windows, bool places) {
  const Reduction reduction(x, windows.kernel);
  return {reduction.maxima(x).back(), places ? reduction.places(x) : LazyTensor(), {}};
}

}  // namespace caldera::windows
