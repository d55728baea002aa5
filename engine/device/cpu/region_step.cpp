#include "engine/device/cpu/region_step.h"

#include <algorithm>
#include <cstdlib>

namespace caldera::cpu {
namespace {

/// Points of a reduction that one task combines. Fixed, so that threads do not change results.
constexpr std::int64_t kReducePart = 64 * 1024;

/// Side of the blocks that transposed operands are read in.
constexpr std::int64_t kBlock = 32;

std::int64_t product(std::span<const std::int64_t> dims) {
  std::int64_t p = 1;
  for (std::int64_t d : dims) p *= d;
  return p;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace

/// The iteration space with one row of strides an operand.
struct RegionStep::Space {
  std::vector<std::int64_t> dims;
  std::vector<std::vector<std::int64_t>> strides;  // [operand][dim]
  std::vector<std::int64_t> offsets;
  int kept = 0;  // leading dims that are not reduced

  Space(const Step& step) : kept(step.dims.rank() - step.reduce_rank) {
    dims.assign(step.dims.begin(), step.dims.end());
    for (const Operand& o : step.operands) {
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

  /// Drops dims of one element and merges neighbours that lie as one in every operand.
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

  /// Where some operand runs through memory along a dim other than the last, splits both so that a tile is a
  /// square block of them: then that operand's cache lines are used whole. Only extents that divide evenly.
  void block_transposes() {
    if (dims.size() < 2) return;
    const std::size_t last = dims.size() - 1;
    for (const auto& s : strides) {
      if (std::abs(s[last]) < kBlock) continue;
      for (std::size_t p = 0; p < last; ++p) {
        if (std::abs(s[p]) != 1 || dims[p] % kBlock != 0 || dims[last] % kBlock != 0) continue;
        if (dims[p] > kBlock || dims[last] > kBlock) split(p);
        return;
      }
    }
  }

  /// (..., p, ..., last) as (..., ..., p / B, last / B, B, B).
  void split(std::size_t p) {
    const auto reshape = [&](std::vector<std::int64_t>& v, bool extents) {
      const std::int64_t x = v[p];
      const std::int64_t y = v.back();
      v.pop_back();
      v.erase(v.begin() + static_cast<std::ptrdiff_t>(p));
      if (extents)
        v.insert(v.end(), {x / kBlock, y / kBlock, kBlock, kBlock});
      else
        v.insert(v.end(), {x * kBlock, y * kBlock, x, y});
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

RegionStep::RegionStep(const Step& step, std::shared_ptr<const RegionProgram> program)
    : program_(std::move(program)), scalars_(step.scalars) {
  const std::size_t inputs = program_->inputs.size();
  const std::size_t indices = program_->indices.size();
  for (std::size_t i = 0; i < step.operands.size(); ++i) {
    auto& list = i < inputs ? inputs_ : i < inputs + indices ? indices_ : outputs_;
    list.push_back({step.operands[i].buffer, 4, {}});
  }
  for (std::size_t i = 0; i < inputs; ++i) inputs_[i].size = size_of(program_->inputs[i]);
  for (std::size_t i = 0; i < outputs_.size(); ++i) outputs_[i].size = size_of(program_->outputs[i].type);

  Space space(step);
  total_ = product(space.dims);
  tile_ = std::min(program_->tile, (std::max<std::int64_t>(total_, 1) + 15) / 16 * 16);
  nanoseconds_ = static_cast<double>(total_) * program_->nanoseconds_per_element;
  space.collapse();
  if (program_->reduce != nullptr) {
    prepare_reduction(std::move(space));
  } else if (total_ > 0) {
    space.block_transposes();
    prepare_elementwise(space);
  }
}

void RegionStep::bind(const Space& space, int kept) {
  std::size_t o = 0;
  for (auto* list : {&inputs_, &indices_}) {
    for (Bound& b : *list) {
      b.access = make_access(space.dims, space.strides[o], space.offsets[o]);
      ++o;
    }
  }
  for (Bound& b : outputs_) {
    std::vector<std::int64_t> dims = space.dims;
    std::vector<std::int64_t> strides = space.strides[o];
    if (program_->reduce != nullptr) {  // only the kept dims, in the order that results come
      const auto first = static_cast<std::ptrdiff_t>(mode_ == Mode::columns ? kept - 1 : kept);
      const auto last = mode_ == Mode::columns ? dims.end() - 1 : dims.end();
      strides.erase(strides.begin() + first, strides.begin() + (last - dims.begin()));
      dims.erase(dims.begin() + first, last);
    }
    b.access = make_access(dims, strides, space.offsets[o]);
    ++o;
  }
}

void RegionStep::prepare_elementwise(const Space& space) {
  mode_ = Mode::elementwise;
  bind(space, 0);
  const std::int64_t inner = space.dims.empty() ? 1 : space.dims.back();
  // Tiles within rows let every operand be used in place; short rows share tiles.
  row_ = inner >= tile_ / 2 ? inner : total_;
  chunks_ = ceil_div(row_, tile_);
  chunk_ = std::min(tile_, ceil_div(ceil_div(row_, chunks_), 16) * 16);
  chunks_ = ceil_div(row_, chunk_);
  tiles_ = total_ / row_ * chunks_;
}

void RegionStep::prepare_reduction(Space space) {
  const std::span<const std::int64_t> dims(space.dims);
  const auto kept = static_cast<std::size_t>(space.kept);
  outer_ = product(dims.first(kept));
  reduced_ = product(dims.subspan(kept));
  if (outer_ == 0) return;
  if (reduced_ == 0) {
    mode_ = Mode::identity;
    bind(space, space.kept);
    return;
  }
  // The kept dim that most inputs run along, if it beats the innermost reduced one.
  mode_ = Mode::rows;
  if (kept > 0 && kept < dims.size()) {
    std::size_t best = 0;
    for (std::size_t d = 1; d < kept; ++d)
      if (space.unit_strides(d, inputs_.size()) >= space.unit_strides(best, inputs_.size())) best = d;
    if (space.unit_strides(best, inputs_.size()) > space.unit_strides(dims.size() - 1, inputs_.size())) {
      mode_ = Mode::columns;
      width_ = dims[best];
      outer_ /= width_;
      space.rotate_to_end(best);
    }
  }
  bind(space, space.kept);
  part_ = std::max<std::int64_t>(kReducePart / width_, 64);
  parts_ = ceil_div(reduced_, part_);
  if (mode_ == Mode::columns) {
    column_chunks_ = ceil_div(width_, tile_);
    column_chunk_ = std::min(tile_, ceil_div(ceil_div(width_, column_chunks_), 16) * 16);
    column_chunks_ = ceil_div(width_, column_chunk_);
  }
}

}  // namespace caldera::cpu
