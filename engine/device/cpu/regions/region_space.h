// RegionSpace: the iteration space of a region while it is made ready.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <span>
#include <vector>

#include "engine/plan/plan.h"

namespace caldera::cpu {

/// Bounds from below the stride by which an operand is taken to be across a dim.
inline constexpr std::int64_t kFarStride = 32;
/// Says how many columns the blocks have in which such operands are gone through: the fewest, the most.
inline constexpr std::int64_t kFewestColumns = 16;
inline constexpr std::int64_t kColumnsTogether = 64;

/// Returns the number of points of a space.
inline std::int64_t points_of(std::span<const std::int64_t> dims) {
  std::int64_t p = 1;
  for (std::int64_t d : dims) p *= d;
  return p;
}

/// Returns how many pieces of `b` cover `a`.
inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// Holds the iteration space with one row of strides an operand.
struct RegionSpace {
  std::vector<std::int64_t> dims;
  std::vector<std::vector<std::int64_t>> strides;  // [operand][dim]
  std::vector<std::int64_t> offsets;
  int kept = 0;  // leading dims that are not reduced

  RegionSpace(const Shape& extents, std::span<const Operand> operands, int kept_dims)
      : dims(extents.begin(), extents.end()), kept(kept_dims) {
    for (const Operand& o : operands) {
      strides.emplace_back(o.strides.begin(), o.strides.end());
      strides.back().resize(dims.size(), 0);
      offsets.push_back(o.offset);
    }
  }

  void erase(std::size_t d) {
    dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(d));
    for (auto& s : strides) s.erase(s.begin() + static_cast<std::ptrdiff_t>(d));
    if (static_cast<int>(d) < kept) --kept;
  }

  /// Drops dims of one element and merges neighbours that are as one in every operand.
  void collapse() {
    for (std::size_t d = dims.size(); d-- > 0;)
      if (dims[d] == 1) erase(d);
    for (std::size_t d = dims.size(); d-- > 1;) {
      if (static_cast<int>(d) == kept) continue;  // kept and reduced dims stay apart
      const bool merges = std::all_of(strides.begin(), strides.end(),
                                      [&](const auto& s) { return s[d - 1] == s[d] * dims[d]; });
      if (!merges) continue;
      dims[d] *= dims[d - 1];
      erase(d - 1);
    }
  }

  /// Moves dim `from` to the end.
  void rotate_to_end(std::size_t from) {
    const auto rotate = [&](std::vector<std::int64_t>& v) {
      std::rotate(v.begin() + static_cast<std::ptrdiff_t>(from),
                  v.begin() + static_cast<std::ptrdiff_t>(from) + 1, v.end());
    };
    rotate(dims);
    for (auto& s : strides) rotate(s);
  }

  /// A dim other than the last that some operand runs through memory along, while it is far across the last
  /// one; nothing where tiles would not gain by that.
  std::optional<std::size_t> across() const {
    if (dims.size() < 2 || dims.back() < kFewestColumns) return std::nullopt;
    const std::size_t last = dims.size() - 1;
    for (const auto& s : strides) {
      if (std::abs(s[last]) < kFarStride) continue;
      for (std::size_t p = 0; p < last; ++p)
        if (std::abs(s[p]) == 1 && dims[p] >= kFewestColumns) return p;
    }
    return std::nullopt;
  }

  /// Whether all `inputs` are across, and all else runs along the last dim.
  bool only_inputs_across(std::size_t p, std::size_t inputs) const {
    const std::size_t last = dims.size() - 1;
    for (std::size_t o = 0; o < strides.size(); ++o) {
      const std::int64_t along = strides[o][o < inputs ? p : last];
      const std::int64_t other = strides[o][o < inputs ? last : p];
      if (along != 1 || other < kFewestColumns) return false;
    }
    return true;
  }

  /// Takes the end of dim `d` that fills no block off, as a space of its own.
  std::optional<RegionSpace> take_rest(std::size_t d, std::int64_t block) {
    const std::int64_t whole = dims[d] / block * block;
    if (whole == dims[d]) return std::nullopt;
    RegionSpace rest = *this;
    rest.dims[d] -= whole;
    dims[d] = whole;
    for (std::size_t o = 0; o < strides.size(); ++o) rest.offsets[o] += whole * strides[o][d];
    return rest;
  }

  /// Lets tiles go along dim `p` in blocks of the last one, which these fill: an operand that runs through
  /// memory along `p` is read as a few streams, its cache lines are used whole, and each line of the others
  /// is. (..., p, ..., last) as (..., ..., last / block, p, block), or (..., last / block, p / run, block,
  /// run) if there is a run.
  void split(std::size_t p, std::int64_t block, std::int64_t run) {
    const auto reshape = [&](std::vector<std::int64_t>& v, bool extents) {
      const std::int64_t x = v[p];
      const std::int64_t y = v.back();
      v.pop_back();
      v.erase(v.begin() + static_cast<std::ptrdiff_t>(p));
      if (run == 0)
        v.insert(v.end(), {extents ? y / block : y * block, x, extents ? block : y});
      else
        v.insert(v.end(), {extents ? y / block : y * block, extents ? x / run : x * run, extents ? block : y,
                           extents ? run : x});
    };
    reshape(dims, true);
    for (auto& s : strides) reshape(s, false);
  }

  /// Inputs that run through memory along `d`.
  int unit_strides(std::size_t d, std::size_t inputs) const {
    return static_cast<int>(std::count_if(strides.begin(),
                                          strides.begin() + static_cast<std::ptrdiff_t>(inputs),
                                          [&](const auto& s) { return std::abs(s[d]) == 1; }));
  }
};

}  // namespace caldera::cpu
