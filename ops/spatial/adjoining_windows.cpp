#include "ops/spatial/adjoining_windows.h"

#include <limits>
#include <utility>
#include <vector>

#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/gather_scatter.h"
#include "ops/core/node_builder.h"
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

struct Flat {
  Shape x, windows;  // (channels of all examples, elements)

  Flat(const Shape& of_x, const Shape& of_windows, std::size_t spatial) {
    std::int64_t lead = 1;
    for (int i = 0; i + static_cast<int>(spatial) < of_x.rank(); ++i) lead *= of_x[i];
    x = Shape{lead, lead == 0 ? 0 : of_x.numel() / lead};
    windows = Shape{lead, lead == 0 ? 0 : of_windows.numel() / lead};
  }
};

LazyTensor flat_places(const LazyTensor& x, const Spatial& kernel, const Flat& flat) {
  return reshape(Reduction(x, kernel).places(stop_gradient(x)), flat.windows);
}
Spatial kernel_of(const Node& node) {
  const auto& values = node.attributes().values();
  return Spatial(values.begin(), values.end());
}

void maxima_vjp(VjpContext& c) {
  const LazyTensor& x = c.inputs[1];
  const Spatial kernel = kernel_of(c.output.node());
  const Flat flat(x.shape(), c.output.shape(), kernel.size());
  const LazyTensor base = zeros(flat.x, x.dtype(), x.device());
  c.grads[1] = reshape(ops::scattered(Scatter::add, base, flat_places(x, kernel, flat),
                                      reshape(c.cotangent, flat.windows), 1, ops::Indices::distinct),
                       x.shape());
}
void maxima_jvp(JvpContext& c) {
  const LazyTensor& x = c.inputs[1];
  const Spatial kernel = kernel_of(c.output.node());
  const Flat flat(x.shape(), c.output.shape(), kernel.size());
  c.tangent = reshape(
      ops::gathered(reshape(c.tangents[1], flat.x), flat_places(x, kernel, flat), 1, ops::Indices::distinct),
      c.output.shape());
}

/// Stands for its first input, the values; the second is what they are the largest elements of.
const OpDef kMaxima{
    .name = "adjoining_maxima", .kind = OpClass::identity, .vjp = maxima_vjp, .jvp = maxima_jvp};

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
  const LazyTensor known = stop_gradient(x), values = reduction.maxima(known).back();
  return {ops::make(kMaxima, values.shape(), values.dtype(), {values, x}, windows.kernel),
          places ? reduction.places(known) : LazyTensor()};
}

}  // namespace caldera::windows
