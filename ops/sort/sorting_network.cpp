// Batcher's bitonic network (1968) in the form that needs no descending runs: a run is compared with the
// mirror image of its neighbour. The first runs are short, and sorted by counting who comes before whom: one
// reduction instead of many stages.
#include "ops/sort/sorting_network.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include "ops/core/arithmetic.h"
#include "ops/core/broadcast.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/selection.h"
#include "ops/core/slicing.h"
#include "ops/core/sum.h"
#include "ops/core/views.h"
#include "ops/reduce/extrema.h"
#include "ops/shape/joining.h"

namespace caldera::ops {
namespace {

/// Counting takes two kernels for all comparisons of every row with itself; the network takes tens, but each
/// less work. Up to these sizes the kernels are what costs.
constexpr std::int64_t kCountedLength = 64;
constexpr std::int64_t kCountedComparisons = 1 << 14;
/// So few are looked for one after the other, in passes over the row.
constexpr std::int64_t kSelected = 8;
/// The length of the runs that the network starts with.
constexpr std::int64_t kRun = 4;
/// How many cells are a column where strides are small.
constexpr std::int64_t kColumn = 64;

/// Numbers in ascending order of (key, place). Places are all different, so nothing is left to chance.
struct Cells {
  LazyTensor key, place;
};

template <class F>
Cells each(const Cells& x, F f) {
  return {f(x.key), f(x.place)};
}

LazyTensor is_before(const Cells& a, const Cells& b) {
  return logical_or(a.key < b.key, logical_and(a.key == b.key, a.place < b.place));
}

/// What is as ascending in x as the result is in x, or, descending, as the result is in the opposite of x.
LazyTensor directed(const LazyTensor& x, bool descending) {
  if (!descending) return x;
  if (is_floating(x.dtype())) return -x;
  if (!is_unsigned(x.dtype())) return -1 - x;  // the least integer has no negative
  return static_cast<std::int64_t>((std::uint64_t{1} << (8 * size_of(x.dtype()))) - 1) - x;
}

/// The rows as cells. NaN compares with nothing: its key is the infinity beside it, and its place is beyond
/// all places on that side.
Cells cells_of(const LazyTensor& x, bool descending) {
  const LazyTensor value =
      stop_gradient(astype(x, x.dtype() == DType::boolean ? DType::u8 : compute_type(x.dtype())));
  Cells out{directed(value, descending), iota(x.shape(), 1, DType::i32, x.device())};
  if (is_floating(x.dtype())) {
    const LazyTensor missing = isnan(value);
    const double infinity = std::numeric_limits<double>::infinity();
    const std::int64_t n = x.shape(1);
    out.key = where(missing, descending ? -infinity : infinity, out.key);
    out.place = where(missing, out.place + (descending ? -n : n), out.place);
  }
  return out;
}

/// Rows of `length` cells; the new ones come after all others.
Cells lengthened(const Cells& x, std::int64_t length) {
  const std::int64_t rows = x.key.shape(0), n = x.key.shape(1);
  if (length == n) return x;
  const Shape more{rows, length - n};
  const LazyTensor last = broadcast_to(max(x.key, -1, true), more);
  const LazyTensor behind = iota(more, 1, DType::i32, x.key.device()) + 2 * n;
  return {concatenate({x.key, last}, 1), concatenate({x.place, behind}, 1)};
}

/// How many cells of its row, the last axis, come before each.
LazyTensor ranks(const Cells& x) {
  const Cells self = each(x, [](const LazyTensor& y) { return expand_dims(y, -1); });
  const Cells other = each(x, [](const LazyTensor& y) { return expand_dims(y, -2); });
  return sum(astype(is_before(other, self), DType::i32), -1);
}

/// x (..., n) in the order of its ranks.
LazyTensor placed(const LazyTensor& x, const LazyTensor& rank) {
  const LazyTensor from = expand_dims(rank, -2);
  const LazyTensor to = expand_dims(iota(rank.shape(), rank.rank() - 1, DType::i32, rank.device()), -1);
  // One term of each sum is not 0.
  return astype(sum(where(from == to, expand_dims(x, -2), 0), -1), x.dtype());
}

/// The places of the first cells, one after the other: what comes next is the first of what comes after the
/// last.
LazyTensor selected_places(const Cells& rows, std::int64_t count) {
  const LazyTensor greatest = max(rows.key, -1, true);
  std::vector<LazyTensor> places;
  Cells latest;
  for (std::int64_t i = 0; i < count; ++i) {
    const LazyTensor remains = i == 0 ? LazyTensor() : is_before(latest, rows);
    latest.key = min(i == 0 ? rows.key : where(remains, rows.key, greatest), -1, true);
    LazyTensor candidates = rows.key == latest.key;
    if (i > 0) candidates = logical_and(candidates, remains);
    latest.place = min(where(candidates, rows.place, std::numeric_limits<std::int32_t>::max()), -1, true);
    places.push_back(latest.place);
  }
  return concatenate(places, 1);
}

/// The lesser in `a`, the greater in `b`.
void exchange(Cells& a, Cells& b) {
  const LazyTensor swap = is_before(b, a);
  const Cells less{where(swap, b.key, a.key), where(swap, b.place, a.place)};
  b = {where(swap, a.key, b.key), where(swap, a.place, b.place)};
  a = less;
}

/// Every `parts` * `stride` cells of axis 0 as `parts` pieces (blocks, 1, stride, columns), one after the
/// other.
std::vector<Cells> pieces_of(const Cells& x, std::int64_t parts, std::int64_t stride) {
  const std::int64_t blocks = x.key.shape(0) / (parts * stride), columns = x.key.shape(1);
  std::vector<Cells> out;
  for (std::int64_t p = 0; p < parts; ++p) {
    out.push_back(each(x, [&](const LazyTensor& y) {
      return slice(reshape(y, Shape{blocks, parts, stride, columns}), 1, p, p + 1);
    }));
  }
  return out;
}

Cells joined(const std::vector<Cells>& pieces) {
  std::vector<LazyTensor> keys, places;
  for (const Cells& piece : pieces) {
    keys.push_back(piece.key);
    places.push_back(piece.place);
  }
  const std::int64_t columns = keys[0].shape(3);
  return each(Cells{concatenate(keys, 1), concatenate(places, 1)}, [&](const LazyTensor& y) {
    return reshape(y, Shape{-1, columns});
  });
}

Cells mirrored(const Cells& x) {
  return each(x, [](const LazyTensor& y) { return slice(y, 2, std::nullopt, std::nullopt, -1); });
}

/// Every kRun cells in order.
Cells first_runs(const Cells& x) {
  std::vector<Cells> cell = pieces_of(x, kRun, 1);
  for (const auto& [i, j] : {std::pair{0U, 1U}, {2U, 3U}, {0U, 2U}, {1U, 3U}, {1U, 2U}})
    exchange(cell[i], cell[j]);
  return joined(cell);
}

/// Cells `stride` and stride / 2 apart are exchanged: two stages of the network in one pass over memory.
/// `first`: blocks are two runs in order, the second of which is read from its end.
Cells two_stages(const Cells& x, std::int64_t stride, bool first) {
  std::vector<Cells> quarter = pieces_of(x, 4, stride / 2);
  if (first) quarter[2] = mirrored(std::exchange(quarter[3], mirrored(quarter[2])));
  exchange(quarter[0], quarter[2]);
  exchange(quarter[1], quarter[3]);
  exchange(quarter[0], quarter[1]);
  exchange(quarter[2], quarter[3]);
  return joined(quarter);
}

Cells one_stage(const Cells& x, std::int64_t stride, bool first) {
  std::vector<Cells> half = pieces_of(x, 2, stride);
  if (first) half[1] = mirrored(half[1]);
  exchange(half[0], half[1]);
  return joined(half);
}

/// The stages from `stride` down to `last`: of a whole merge where `first`.
Cells stages(Cells x, std::int64_t stride, std::int64_t last, bool first) {
  for (; stride > last; stride /= 4) x = two_stages(x, stride, std::exchange(first, false));
  return stride == last ? one_stage(x, stride, first) : x;
}

// Cells are along axis 0 in one of two ways, so that kernels walk through long stretches of memory: all in
// one column for large strides, every `height` of them as a column beside the others for small ones.
Cells in_columns(const Cells& x, std::int64_t height) {
  return each(x, [&](const LazyTensor& y) { return transpose(reshape(y, Shape{-1, height})); });
}
Cells in_one_column(const Cells& x) {
  return each(x, [](const LazyTensor& y) { return reshape(transpose(y), Shape{y.numel(), 1}); });
}

/// Runs in order (of a multiple of kColumn cells) twice as long, all in one column.
Cells merged(Cells x, std::int64_t run) {
  x = stages(x, run, kColumn, true);
  return in_one_column(stages(in_columns(x, kColumn), kColumn / 2, 1, false));
}

/// Of every two such runs one with the lesser cells of both.
Cells lesser_half(const Cells& x, std::int64_t run) {
  std::vector<Cells> half = pieces_of(x, 2, run);
  half[1] = mirrored(half[1]);
  exchange(half[0], half[1]);
  const Cells lesser = stages(joined({half[0]}), run / 2, kColumn, false);
  return in_one_column(stages(in_columns(lesser, kColumn), kColumn / 2, 1, false));
}

/// Of all runs of every line in order one with the least cells. Of an odd number the last one waits.
Cells least_run(Cells x, std::int64_t lines, std::int64_t run) {
  for (std::int64_t runs = x.key.numel() / (lines * run); runs > 1; runs = (runs + 1) / 2) {
    if (runs % 2 == 0) {
      x = lesser_half(x, run);
      continue;
    }
    const auto part = [&](const LazyTensor& y, std::int64_t first, std::int64_t last) {
      return slice(reshape(y, Shape{lines, runs * run}), 1, first * run, last * run);
    };
    const Cells pairs = lesser_half(each(x,
                                         [&](const LazyTensor& y) {
                                           return reshape(part(y, 0, runs - 1), Shape{-1, 1});
                                         }),
                                    run);
    const auto with_rest = [&](const LazyTensor& y, const LazyTensor& all) {
      const LazyTensor half = reshape(y, Shape{lines, -1});
      return reshape(concatenate({half, part(all, runs - 1, runs)}, 1), Shape{-1, 1});
    };
    x = {with_rest(pairs.key, x.key), with_rest(pairs.place, x.place)};
  }
  return x;
}

std::int64_t power_above(std::int64_t n) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
}

/// The places of the first cells of every row in order, by the network.
LazyTensor sorted_places(const Cells& rows, std::int64_t count) {
  const std::int64_t lines = rows.key.shape(0), n = rows.key.shape(1);
  const std::int64_t most = std::max(power_above(n), kRun), height = std::min(most, kColumn);
  const std::int64_t wanted =
      std::clamp(power_above(count), height, most);  // a run with all that is asked for
  const std::int64_t length = (n + wanted - 1) / wanted * wanted;
  const Cells all = each(lengthened(rows, length), [](const LazyTensor& y) {
    return reshape(y, Shape{-1, 1});
  });
  Cells x = first_runs(in_columns(all, height));
  std::int64_t run = kRun;
  for (; run < height; run *= 2) x = stages(x, run, 1, true);
  x = in_one_column(x);
  for (; run < wanted; run *= 2) x = merged(x, run);
  x = least_run(x, lines, run);
  return slice(reshape(x.place, Shape{lines, run}), 1, 0, count);
}

}  // namespace

LazyTensor order_by_network(const LazyTensor& x, bool descending, std::int64_t count) {
  const std::int64_t n = x.shape(1);
  const Cells cells = cells_of(x, descending);
  LazyTensor places;
  if (n == 1 || (n <= kCountedLength && x.numel() * n <= kCountedComparisons)) {
    places = slice(placed(cells.place, ranks(cells)), 1, 0, count);
  } else if (count > 0 && count <= kSelected) {
    places = selected_places(cells, count);
  } else {
    places = sorted_places(cells, count);
  }
  return is_floating(x.dtype()) ? remainder(places, n) : places;
}

}  // namespace caldera::ops
