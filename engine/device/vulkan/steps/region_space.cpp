#include "engine/device/vulkan/steps/region_space.h"

#include <algorithm>
#include <optional>

namespace caldera::vulkan {
namespace {

/// Appends dims [first, last) of the step to `dims`, dropping those of extent 1 and merging neighbours.
void merge(const Step& step, int first, int last, Dims& dims, std::vector<Dims>& strides) {
  const int start = strides.empty() ? 0 : strides[0].rank();
  for (int d = first; d < last; ++d) {
    const std::int64_t extent = step.dims[d];
    if (extent == 1) continue;
    bool joins = dims.rank() > 0 && !strides.empty() && strides[0].rank() > start;
    for (std::size_t k = 0; joins && k < strides.size(); ++k)
      joins = strides[k].back() == step.operands[k].strides[d] * extent;
    if (joins) {
      dims[dims.rank() - 1] *= extent;
      for (std::size_t k = 0; k < strides.size(); ++k)
        strides[k][strides[k].rank() - 1] = step.operands[k].strides[d];
    } else {
      dims.push_back(extent);
      for (std::size_t k = 0; k < strides.size(); ++k) strides[k].push_back(step.operands[k].strides[d]);
    }
  }
}

Access classify(const RegionSpace& space, const Dims& strides, int rank, bool index) {
  bool scalar = true;
  bool linear = true;
  std::int64_t dense = 1;
  for (int d = rank - 1; d >= 0; --d) {
    const std::int64_t extent = space.extent(d);
    if (extent == 1) continue;
    scalar = scalar && strides[d] == 0;
    linear = linear && strides[d] == dense;
    dense *= extent;
  }
  if (scalar) return Access::scalar;
  return linear && !index ? Access::linear : Access::strided;
}

}  // namespace

Dims RegionSpace::extents() const {
  Dims all = kept;
  for (std::int64_t e : reduced) all.push_back(e);
  return all;
}

RegionSpace make_space(const Step& step) {
  RegionSpace space;
  const int kept = step.dims.rank() - step.as<RegionStep>().reduce_rank;
  space.strides.resize(step.operands.size());
  for (int d = 0; d < step.dims.rank(); ++d) {
    (d < kept ? space.kept_points : space.reduced_points) *= step.dims[d];
  }
  merge(step, 0, kept, space.kept, space.strides);
  merge(step, kept, step.dims.rank(), space.reduced, space.strides);
  return space;
}

bool make_alike(std::span<RegionSpace> spaces) {
  int kept = 0, reduced = 0;
  for (const RegionSpace& s : spaces) {
    kept = std::max(kept, s.kept.rank());
    reduced = std::max(reduced, s.reduced.rank());
  }
  if (kept + reduced > kMaxRank) return false;
  for (RegionSpace& s : spaces) {
    while (s.kept.rank() < kept) {
      s.kept.insert(0, 1);
      for (Dims& strides : s.strides) strides.insert(0, 0);
    }
    while (s.reduced.rank() < reduced) {
      s.reduced.insert(0, 1);
      for (Dims& strides : s.strides) strides.insert(kept, 0);
    }
  }
  return true;
}

std::vector<Access> common_access(const Kernel& kernel, std::span<const RegionSpace> spaces) {
  const std::vector<bool> one_a_row = row_operands(kernel);
  const std::size_t inputs = kernel.inputs.size();
  const std::size_t first_output = inputs + static_cast<std::size_t>(kernel.index_count);
  std::vector<Access> list;
  for (std::size_t k = 0; k < one_a_row.size(); ++k) {
    const bool index = k >= inputs && k < first_output;
    const auto access_in = [&](const RegionSpace& s) {
      return classify(s, s.strides[k], one_a_row[k] ? s.kept.rank() : s.rank(), index);
    };
    Access access = access_in(spaces[0]);
    for (const RegionSpace& s : spaces.subspan(1)) {
      if (access_in(s) != access) access = Access::strided;
    }
    list.push_back(access);
  }
  return list;
}

namespace {

/// What a lane may hold of the elements of its points, and of the instructions of all of them.
constexpr std::int64_t kMostWords = 64;
constexpr std::int64_t kMostUnrolled = 512;

/// Where there are so few points, what counts is how long one takes: many lanes do little each.
constexpr std::int64_t kFewPoints = 8192;
constexpr std::int64_t kMostUnrolledOfFew = 64;

DType memory_type(const Kernel& kernel, std::size_t operand) {
  const std::size_t inputs = kernel.inputs.size();
  return operand < inputs
             ? kernel.inputs[operand]
             : kernel.outputs[operand - inputs - static_cast<std::size_t>(kernel.index_count)].type;
}

/// What neighbours are of an operand; nothing where they neither share an element nor are together.
std::optional<Neighbours> neighbours_of(std::span<const RegionSpace> spaces, std::size_t operand,
                                        Access access) {
  if (access == Access::scalar) return Neighbours::one;
  if (access == Access::linear) return Neighbours::together;
  const std::int64_t stride = spaces[0].strides[operand].back();
  for (const RegionSpace& s : spaces) {
    if (s.strides[operand].back() != stride) return std::nullopt;
  }
  if (stride == 0) return Neighbours::one;
  return stride == 1 ? std::optional(Neighbours::together) : std::nullopt;
}

/// Whether groups of `width` neighbours never end in the midst of a row or of a word.
bool divides(const RegionSpace& space, const Together& together, std::span<const Access> access, int width,
             bool rows) {
  const int inner = space.rank() - 1;
  if ((rows || inner > 0) && (space.extent(inner) % width != 0 || space.extent(inner) == 0)) return false;
  for (std::size_t k = 0; k < access.size(); ++k) {
    if (together.neighbours[k] != Neighbours::together || access[k] != Access::strided) continue;
    for (int d = 0; d < inner; ++d) {
      if (space.extent(d) > 1 && space.strides[k][d] % width != 0) return false;
    }
  }
  return true;
}

}  // namespace

Together common_neighbours(const Kernel& kernel, std::span<const RegionSpace> spaces,
                           std::span<const Access> access, std::int64_t most) {
  const std::vector<bool> one_a_row = row_operands(kernel);
  const std::size_t inputs = kernel.inputs.size();
  const std::size_t first_output = inputs + static_cast<std::size_t>(kernel.index_count);
  const bool rows = kernel.reduce || kernel.has_rows();
  if (rows ? spaces[0].reduced.rank() == 0 : spaces[0].rank() == 0) return {};

  Together together;
  std::int64_t narrowest = 8, widest = 1, bytes = 0;
  for (std::size_t k = 0; k < access.size(); ++k) {
    const bool index = k >= inputs && k < first_output;
    std::optional<Neighbours> n = one_a_row[k] ? Neighbours::one : neighbours_of(spaces, k, access[k]);
    // What is otherwise is read element by element, as it would be alone.
    const bool moves = access[k] != Access::scalar;
    if ((index && moves) || (!n && !rows && k < inputs)) n = Neighbours::each;
    if (!n || (k >= first_output && *n != Neighbours::together && !one_a_row[k])) return {};
    together.neighbours.push_back(*n);
    if (*n != Neighbours::together) continue;
    const auto size = static_cast<std::int64_t>(size_of(memory_type(kernel, k)));
    narrowest = std::min(narrowest, size);
    widest = std::max(widest, size);
    bytes += size;
  }
  if (bytes == 0) return {};
  // 16 bytes of the narrowest operand; of the next but one where types differ by more than a factor of two.
  std::int64_t width = 16 / std::max(narrowest, widest / 2);
  const bool few = std::ranges::all_of(
      spaces, [](const RegionSpace& s) { return s.kept_points * s.reduced_points <= kFewPoints; });
  const std::int64_t unrolled = few && !rows ? kMostUnrolledOfFew : kMostUnrolled;
  const auto fits = [&] {
    return width <= most && width * bytes <= 4 * kMostWords &&
           width * static_cast<std::int64_t>(kernel.code.size()) <= unrolled &&
           std::ranges::all_of(spaces, [&](const RegionSpace& s) {
             return divides(s, together, access, static_cast<int>(width), rows);
           });
  };
  while (width > 1 && !fits()) width /= 2;
  if (width == 1 || width * narrowest < 4) return {};
  together.width = static_cast<int>(width);
  return together;
}

}  // namespace caldera::vulkan
