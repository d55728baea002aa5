#include "ops/spatial/large_windows.h"

#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/selection.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/elementwise/sign.h"
#include "ops/reduce/extrema.h"

namespace caldera::windows {
namespace {

/// Up to so many elements of a window are read in one pass that is fused with what is around it.
constexpr std::int64_t kFew = 32;

/// Windows along one axis.
struct Line {
  int axis;
  std::int64_t kernel, stride, dilation, count;

  Line(const Windows& w, std::size_t i)
      : axis(static_cast<int>(i) + kLead),
        kernel(w.kernel[i]),
        stride(w.stride[i]),
        dilation(w.dilation[i]),
        count(w.counts[i]) {}

  bool are_side_by_side() const { return stride == kernel && dilation == 1; }
  /// x with the axis as one of windows and one, behind it, of their elements.
  LazyTensor side_by_side(const LazyTensor& x) const {
    Shape shape = x.shape();
    shape[axis] = count;
    shape.insert(axis + 1, kernel);
    return reshape(slice(x, axis, 0, count * kernel), shape);
  }
};

/// What the windows of a line are combined of: `both(a, b)` of what elements before others and these have.
/// part(of, first, count, stride) takes some of them along the axis.
template <class T, class Both, class Part>
T doubled(const Line& line, const T& single, const Both& both, const Part& part) {
  const auto kernel = static_cast<std::uint64_t>(line.kernel);
  T windows = single;  // of `size` elements from each place on
  std::int64_t size = 1, places = (line.count - 1) * line.stride + (line.kernel - 1) * line.dilation + 1;
  T result;
  bool is_begun = false;
  std::int64_t before = 0;  // elements that the result has already
  for (int bit = 0;; ++bit) {
    if ((kernel >> bit & 1U) != 0) {
      const T own = part(windows, before * line.dilation, line.count, line.stride);
      result = is_begun ? both(result, own) : own;
      is_begun = true;
      before += size;
    }
    if (kernel >> (bit + 1) == 0) return result;
    const std::int64_t step = size * line.dilation;
    places -= step;
    windows = both(part(windows, 0, places, 1), part(windows, step, places, 1));
    size *= 2;
  }
}

LazyTensor part_of(const LazyTensor& x, int axis, std::int64_t first, std::int64_t count,
                   std::int64_t stride) {
  return slice(x, axis, first, first + (count - 1) * stride + 1, stride);
}

/// Elements, whether they are no margin's (undefined where all are), and what goes with each (or undefined).
struct Candidates {
  LazyTensor values, are_elements, places;
};

Candidates larger(const Candidates& first, const Candidates& later) {
  const LazyTensor &a = first.values, &b = later.values;
  LazyTensor replaces = logical_and(logical_or(greater(b, a), isnan(b)), logical_not(isnan(a)));
  const auto places = [&] {
    return first.places.defined() ? where(replaces, later.places, first.places) : LazyTensor();
  };
  if (!first.are_elements.defined()) return {where(replaces, b, a), {}, places()};
  // An element wins against a margin, even by a tie.
  replaces = logical_or(replaces, logical_and(later.are_elements, logical_not(first.are_elements)));
  return {where(replaces, b, a), logical_or(first.are_elements, later.are_elements), places()};
}

}  // namespace

bool are_large(const Windows& windows) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : windows.kernel)
    if (__builtin_mul_overflow(elements, extent, &elements)) return true;
  return elements > kFew;
}

LazyTensor large_sums(const LazyTensor& padded, const Windows& windows) {
  LazyTensor y = padded;
  for (std::size_t i = windows.kernel.size(); i-- > 0;) {
    const Line line(windows, i);
    y = line.are_side_by_side()
            ? sum(line.side_by_side(y), line.axis + 1)
            : doubled(
                  line, y, [](const LazyTensor& a, const LazyTensor& b) { return a + b; },
                  [&](const LazyTensor& x, std::int64_t first, std::int64_t count, std::int64_t stride) {
                    return part_of(x, line.axis, first, count, stride);
                  });
  }
  return y;
}

LargestOfWindows large_maxima(const LazyTensor& padded, const LazyTensor& is_element,
                              const LazyTensor& places, const Windows& windows) {
  Candidates best{padded, is_element, places};
  for (std::size_t i = windows.kernel.size(); i-- > 0;) {
    const Line line(windows, i);
    if (line.are_side_by_side() && !is_element.defined() && !places.defined()) {
      best.values = max(line.side_by_side(best.values), line.axis + 1);
      continue;
    }
    best = doubled(line, best, larger,
                   [&](const Candidates& x, std::int64_t first, std::int64_t count, std::int64_t stride) {
                     const auto part = [&](const LazyTensor& of) {
                       return of.defined() ? part_of(of, line.axis, first, count, stride) : LazyTensor();
                     };
                     return Candidates{part(x.values), part(x.are_elements), part(x.places)};
                   });
  }
  return {best.values, best.places, best.are_elements};
}

}  // namespace caldera::windows
