#include "engine/device/cpu/indexed/gather_scatter.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "engine/base/error.h"
#include "engine/device/cpu/host/parallel.h"
#include "engine/tensor/dispatch.h"

namespace caldera::cpu {
namespace {

/// Rows of a gather that are asked for ahead, and as many of their lines as memory gives meanwhile: no
/// processor looks ahead from one row to the next.
constexpr std::int64_t kRowsAhead = 2;
constexpr std::int64_t kMostLinesAhead = 32;
constexpr std::int64_t kLine = 64;
constexpr std::int64_t kRowPerThread = 64;  // elements of a row that are worth a thread of their own

template <class T>
struct GatherRow {
  using Element = T;
  static constexpr bool kScatters = false;
  std::int64_t from_stride, to_stride;
  T fill;  // for what is outside of the axis
  void operator()(T* to, const T* from, std::int64_t n) const {
    if (from_stride == 1 && to_stride == 1)
      std::memcpy(to, from, static_cast<std::size_t>(n) * sizeof(T));
    else
      for (std::int64_t j = 0; j < n; ++j) to[j * to_stride] = from[j * from_stride];
  }
  void outside(T* to, std::int64_t n) const {
    for (std::int64_t j = 0; j < n; ++j) to[j * to_stride] = fill;
  }
  void one(T& to, const T& from) const { to = from; }
};

template <class T, Scatter kHow>
struct ScatterRow {
  using Element = T;
  static constexpr bool kScatters = true;
  std::int64_t from_stride, to_stride;
  bool boolean;
  // Of one instruction, whose second operand is the result where one is NaN: a processor foresees no branch.
  static T larger(T a, T b) { return a > b ? a : b; }
  static T smaller(T a, T b) { return a < b ? a : b; }
  static T product(T a, T b) {
    if constexpr (std::is_floating_point_v<T>)
      return a * b;
    else
      return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  }
  /// Of an element and what comes to it. NaN is larger than every number, and smaller.
  static T combined(T a, T b) {
    if constexpr (kHow == Scatter::set)
      return b;
    else if constexpr (kHow == Scatter::maximum)
      return a != a ? a : larger(a, b);
    else if constexpr (kHow == Scatter::minimum)
      return a != a ? a : smaller(a, b);
    else if constexpr (kHow == Scatter::multiply)
      return product(a, b);
    else if constexpr (std::is_floating_point_v<T>)
      return a + b;
    else
      return static_cast<T>(static_cast<std::make_unsigned_t<T>>(a) +
                            static_cast<std::make_unsigned_t<T>>(b));
  }
  void operator()(T* to, const T* from, std::int64_t n) const {
    if (from_stride == 1 && to_stride == 1) {
      // The output and the updates are different buffers.
      T* __restrict t = to;
      const T* __restrict f = from;
      for (std::int64_t j = 0; j < n; ++j) t[j] = combined(t[j], f[j]);
    } else {
      for (std::int64_t j = 0; j < n; ++j) {
        T& t = to[j * to_stride];
        t = combined(t, from[j * from_stride]);
      }
    }
    if (boolean)  // "any"
      for (std::int64_t j = 0; j < n; ++j) to[j * to_stride] = static_cast<T>(to[j * to_stride] != T(0));
  }
  void outside(T*, std::int64_t) const {}
  void one(T& to, const T& from) const {
    to = combined(to, from);
    if (boolean) to = static_cast<T>(to != T(0));
  }
};

/// NaN of the floating types, else 0. T may be an integer of the size of `type`.
template <class T>
T outside_value(DType type) {
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::quiet_NaN();
  if (type == DType::f16) return static_cast<T>(0x7e00);
  if (type == DType::bf16) return static_cast<T>(0x7fc0);
  return T{};
}

/// As what elements of type T are read and written. Those of types of memory are only moved, so they are
/// integers of their size that another type is too.
template <class T>
using Moved =
    std::conditional_t<is_compute_type(dtype_of<T>()), Stored<T>,
                       std::conditional_t<sizeof(T) == 1, std::uint8_t,
                                          std::conditional_t<sizeof(T) == 2, std::uint16_t, std::int32_t>>>;

}  // namespace

PreparedIndexed::PreparedIndexed(const Step& step, const IndexedAxis& axis, std::optional<Scatter> scatter,
                                 DType index_type)
    : scatter_(scatter),
      type_(step.dtype),
      index_type_(index_type),
      axis_extent_(axis.extent),
      axis_stride_(axis.stride) {
  if (index_type != DType::i32 && index_type != DType::i64)
    throw DTypeError(step.name() + ": indices of " + std::string(name(index_type)) + "; want int32 or int64");
  for (int o = 0; o < 3; ++o) {
    buffers_[o] = step.operands[static_cast<std::size_t>(o)].buffer;
    offsets_[o] = step.operands[static_cast<std::size_t>(o)].offset;
  }
  if (scatter_ && scatter_ != Scatter::set && is_memory_type(type_))
    throw DTypeError(step.name() + ": the CPU combines " + std::string(name(type_)) + " in " +
                     std::string(name(compute_type(type_))) + " alone");
  const auto stride = [&](int o, int d) { return step.operands[static_cast<std::size_t>(o)].strides[d]; };
  points_ = step.dims.numel();
  for (int d = 0; d < step.dims.rank(); ++d) {
    const std::int64_t extent = step.dims[d];
    if (extent == 1) continue;
    const bool merges = !dims_.empty() && [&] {
      for (int o = 0; o < 3; ++o)
        if (strides_[o].back() != stride(o, d) * extent) return false;
      return true;
    }();
    if (merges) {
      dims_.back() *= extent;
      for (int o = 0; o < 3; ++o) strides_[o].back() = stride(o, d);
    } else {
      dims_.push_back(extent);
      for (int o = 0; o < 3; ++o) strides_[o].push_back(stride(o, d));
    }
  }
  // Points along `indices` meet in the elements that a scatter writes: they are neither a row nor free, even
  // where their index is the same.
  const auto apart = [&](std::size_t d) { return !scatter_ || strides_[2][d] != 0; };
  if (!dims_.empty() && strides_[1].back() == 0 && apart(dims_.size() - 1)) {
    row_ = dims_.back();
    dims_.pop_back();
    for (int o = 0; o < 3; ++o) {
      row_strides_[o] = strides_[o].back();
      strides_[o].pop_back();
    }
  }
  const auto is_free = [&](std::size_t d) {
    return scatter_ ? apart(d) : strides_[1][d] == 0 || strides_[0][d] != 0;
  };
  while (free_dims_ < dims_.size() && is_free(free_dims_)) ++free_dims_;
  // Every point of a gather has an element of its own. Where no dimension tells rows of indices apart,
  // threads share out the points; what each point copies is then worth more than finding where its part
  // begins.
  if (!scatter_ && (row_ > 1 || free_dims_ == 0)) free_dims_ = dims_.size();
}

/// Points along the innermost dimension, whose first has these elements of the three operands. Rows that have
/// one element need no more than that.
template <class Index, class Row>
void PreparedIndexed::run_line(const Row& row, const Line<typename Row::Element>& line,
                               std::int64_t width) const {
  const auto* indices = reinterpret_cast<const Index*>(line.indices) + line.element[1];
  const auto* from = line.from + line.element[0];
  auto* to = line.to + line.element[2];
  const auto extent = static_cast<std::uint64_t>(axis_extent_);
  if (row_ == 1) {
    const auto single = [&](std::int64_t from_step, std::int64_t index_step, std::int64_t to_step) {
      const std::int64_t from_stride = Row::kScatters ? 0 : axis_stride_,
                         to_stride = Row::kScatters ? axis_stride_ : 0;
      auto* t = to;
      const auto* f = from;
      const Index* places = indices;
      for (std::int64_t r = 0; r < line.repeats; ++r) {
        for (std::int64_t p = 0; p < line.points; ++p) {
          const auto index = static_cast<std::int64_t>(places[p * index_step]);
          if (static_cast<std::uint64_t>(index) >= extent) [[unlikely]]
            row.outside(t + p * to_step, 1);
          else
            row.one(t[p * to_step + index * to_stride], f[p * from_step + index * from_stride]);
        }
        f += line.repeat_steps[0];
        places += line.repeat_steps[1];
        t += line.repeat_steps[2];
      }
    };
    // Steps that are known make the loop short.
    const bool contiguous = line.steps[1] == 1 && (Row::kScatters ? line.steps[0] : line.steps[2]) == 1;
    const std::int64_t other = Row::kScatters ? line.steps[2] : line.steps[0];
    if (contiguous && other == 0) return Row::kScatters ? single(1, 1, 0) : single(0, 1, 1);
    if (contiguous && other == 1) return single(1, 1, 1);
    return single(line.steps[0], line.steps[1], line.steps[2]);
  }
  const std::int64_t lines = std::min(kMostLinesAhead, width * std::int64_t{sizeof(*from)} / kLine);
  const bool looks_ahead = !scatter_ && row_strides_[0] == 1 && lines > 1;
  for (std::int64_t p = 0; p < line.points; ++p) {
    if (looks_ahead && p + kRowsAhead < line.points) {
      const auto next = static_cast<std::uint64_t>(indices[(p + kRowsAhead) * line.steps[1]]);
      const auto* ahead = reinterpret_cast<const std::byte*>(
          from + (p + kRowsAhead) * line.steps[0] +
          static_cast<std::int64_t>(next < extent ? next : 0) * axis_stride_);
      for (std::int64_t at = 0; at < lines; ++at) __builtin_prefetch(ahead + at * kLine);
    }
    const auto index = static_cast<std::int64_t>(indices[p * line.steps[1]]);
    const bool inside = static_cast<std::uint64_t>(index) < extent;
    const std::int64_t along = inside ? index * axis_stride_ : 0;
    auto* target = to + p * line.steps[2] + (scatter_ ? along : 0);
    const auto* source = from + p * line.steps[0] + (scatter_ ? 0 : along);
    if (!inside)
      row.outside(target, width);
    else
      row(target, source, width);
  }
}

/// The points of some outer positions and some elements of every row, in order.
template <class Row>
void PreparedIndexed::run_part(const RunContext& context, const Row& row, std::int64_t outer_begin,
                               std::int64_t outer_end, std::int64_t row_begin, std::int64_t row_end) const {
  using T = typename Row::Element;
  const auto at = [&](int o) { return context.buffers[static_cast<std::size_t>(buffers_[o])]; };
  Line<T> line;
  line.from = reinterpret_cast<const T*>(at(0)) + offsets_[0] + row_begin * row_strides_[0];
  line.to = reinterpret_cast<T*>(at(2)) + offsets_[2] + row_begin * row_strides_[2];
  line.indices = at(1);
  const std::size_t lines = std::max(free_dims_, dims_.empty() ? 0 : dims_.size() - 1);
  std::int64_t count = 1;  // of lines
  for (std::size_t d = free_dims_; d < lines; ++d) count *= dims_[d];
  if (!dims_.empty()) {
    line.points = lines < dims_.size() ? dims_.back() : 1;
    for (int o = 0; o < 3; ++o) line.steps[o] = strides_[o].back();
  }
  // Where every dimension is free, the innermost one is the line, or what of it belongs to the part.
  const bool is_free_line = free_dims_ > 0 && lines == free_dims_ && free_dims_ == dims_.size();

  // Lines of the innermost free dimension, which has one each, are gone through without a look at the others.
  const bool repeats = row_ == 1 && free_dims_ > 0 && count == 1 && !is_free_line;
  if (repeats)
    for (int o = 0; o < 3; ++o) line.repeat_steps[o] = strides_[o][free_dims_ - 1];

  for (std::int64_t outer = outer_begin; outer < outer_end;
       outer += is_free_line ? line.points : line.repeats) {
    if (repeats) {
      const std::int64_t extent = dims_[free_dims_ - 1];
      line.repeats = std::min(extent - outer % extent, outer_end - outer);
    }
    if (is_free_line) line.points = std::min(dims_.back() - outer % dims_.back(), outer_end - outer);
    std::int64_t(&element)[3] = line.element;
    element[0] = element[2] = 0;
    element[1] = offsets_[1];
    std::int64_t rest = outer;
    for (std::size_t d = free_dims_; d-- > 0;) {
      for (int o = 0; o < 3; ++o) element[o] += rest % dims_[d] * strides_[o][d];
      rest /= dims_[d];
    }
    std::int64_t coordinate[kMaxRank] = {};
    for (std::int64_t l = 0; l < count; ++l) {
      if (index_type_ == DType::i32)
        run_line<std::int32_t>(row, line, row_end - row_begin);
      else
        run_line<std::int64_t>(row, line, row_end - row_begin);
      for (std::size_t d = lines; d-- > free_dims_;) {
        for (int o = 0; o < 3; ++o) element[o] += strides_[o][d];
        if (++coordinate[d] < dims_[d]) break;
        for (int o = 0; o < 3; ++o) element[o] -= strides_[o][d] * dims_[d];
        coordinate[d] = 0;
      }
    }
  }
}

template <class T>
void PreparedIndexed::run_typed(const RunContext& context) const {
  std::int64_t outer = 1;
  for (std::size_t d = 0; d < free_dims_; ++d) outer *= dims_[d];
  const auto run_with = [&](const auto& row) {
    const double nanoseconds = static_cast<double>(points_) * 0.5;
    // Threads share neither an output element nor the order in which it is added to.
    if (outer >= row_ / kRowPerThread) {
      parallel_ranges(outer, threads_for(nanoseconds, outer), [&](std::int64_t begin, std::int64_t end) {
        run_part(context, row, begin, end, 0, row_);
      });
    } else {
      parallel_ranges(
          row_, threads_for(nanoseconds, row_ / kRowPerThread),
          [&](std::int64_t begin, std::int64_t end) { run_part(context, row, 0, outer, begin, end); });
    }
  };
  const auto scatter_with = [&]<Scatter kHow>() {
    run_with(ScatterRow<T, kHow>{row_strides_[0], row_strides_[2], type_ == DType::boolean});
  };
  if (!scatter_) return run_with(GatherRow<T>{row_strides_[0], row_strides_[2], outside_value<T>(type_)});
  switch (*scatter_) {
    case Scatter::add:
      return scatter_with.template operator()<Scatter::add>();
    case Scatter::set:
      return scatter_with.template operator()<Scatter::set>();
    case Scatter::maximum:
      return scatter_with.template operator()<Scatter::maximum>();
    case Scatter::minimum:
      return scatter_with.template operator()<Scatter::minimum>();
    case Scatter::multiply:
      return scatter_with.template operator()<Scatter::multiply>();
  }
}

void PreparedIndexed::run(const RunContext& context) const {
  if (points_ == 0) return;
  dispatch(type_, [&]<class T>() { run_typed<Moved<T>>(context); });
}

}  // namespace caldera::cpu
