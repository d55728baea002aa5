// Slices, and what else stands between the brackets of x[{...}].
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <variant>

#include "engine/base/to_int64.h"

namespace caldera {

/// start:stop:step, with Python's rules for negative and absent bounds; by default all of an axis.
struct Slice {
  std::optional<std::int64_t> start = {}, stop = {};
  std::int64_t step = 1;
};

/// Stands for all axes that the other entries of x[{...}] leave: Python's `...`.
struct Ellipsis {};
inline constexpr Ellipsis kEllipsis{};

/// A new axis of extent 1: NumPy's `newaxis`, Python's None.
struct NewAxis {};
inline constexpr NewAxis kNewAxis{};

/// One entry of x[{...}]: an index along an axis, which the result then lacks, a slice of an axis, kEllipsis
/// or kNewAxis. Braces alone are a slice: x[{2, {1, 5}, {}}] is Python's x[2, 1:5, :]. Throws ValueError for
/// an unsigned integer that 64 bits with a sign do not hold.
class Index {
 public:
  Index() = default;  // all of an axis
  Index(std::optional<std::int64_t> start, std::optional<std::int64_t> stop, std::int64_t step = 1)
      : entry_(Slice{start, stop, step}) {}
  Index(Slice slice) : entry_(slice) {}
  template <std::integral T>
  requires(!std::same_as<T, bool>) Index(T index) : entry_(to_int64(index)) {}
  /// A bool is no index: NumPy's x[True] is a mask. Convert it to an integer where 0 or 1 is meant.
  template <std::same_as<bool> T>
  Index(T) = delete;
  Index(Ellipsis ellipsis) : entry_(ellipsis) {}
  Index(NewAxis axis) : entry_(axis) {}

  const std::variant<Slice, std::int64_t, Ellipsis, NewAxis>& entry() const { return entry_; }

 private:
  std::variant<Slice, std::int64_t, Ellipsis, NewAxis> entry_;
};

}  // namespace caldera
