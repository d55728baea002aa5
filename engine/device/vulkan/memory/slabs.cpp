#include "engine/device/vulkan/memory/slabs.h"

#include <algorithm>
#include <bit>

namespace caldera::vulkan {
namespace {

std::size_t class_of(std::uint64_t bytes) { return bytes == 0 ? 0 : (bytes - 1) / Slabs::kStep; }
std::uint64_t piece_bytes(std::size_t size_class) { return (size_class + 1) * Slabs::kStep; }

static_assert(Slabs::kSlab / Slabs::kStep <= 64 * std::tuple_size_v<decltype(Slab::free)>);

}  // namespace

std::uint64_t Slabs::slab_bytes(std::uint64_t bytes) {
  constexpr std::uint64_t kMultiple = 256;  // keeps what is behind it aligned
  const std::uint64_t piece = piece_bytes(class_of(bytes));
  return (kSlab / piece * piece + kMultiple - 1) / kMultiple * kMultiple;
}

std::optional<Slabs::Piece> Slabs::take(std::uint64_t bytes) {
  const std::vector<Slab*>& open = open_[class_of(bytes)];
  if (open.empty()) return std::nullopt;
  return piece_of(*open.back());
}

Slabs::Piece Slabs::take_from(Range range, std::uint64_t bytes) {
  const std::size_t size_class = class_of(bytes);
  auto slab = std::make_unique<Slab>();
  slab->range = range;
  slab->piece_bytes = static_cast<std::uint32_t>(piece_bytes(size_class));
  slab->pieces = static_cast<std::uint32_t>(range.bytes / slab->piece_bytes);
  for (std::uint32_t i = 0; i < slab->pieces; ++i) slab->free[i / 64] |= std::uint64_t{1} << (i % 64);
  slab->home = all_.size();
  slab->at = open_[size_class].size();
  open_[size_class].push_back(slab.get());
  all_.push_back(std::move(slab));
  return piece_of(*all_.back());
}

Slabs::Piece Slabs::piece_of(Slab& slab) {
  const auto word = std::ranges::find_if(slab.free, [](std::uint64_t bits) { return bits != 0; });
  const auto index = static_cast<std::uint64_t>(word - slab.free.begin()) * 64 +
                     static_cast<std::uint64_t>(std::countr_zero(*word));
  *word &= *word - 1;
  if (++slab.used == slab.pieces) close(slab);
  return {&slab, {slab.range.block, slab.range.offset + index * slab.piece_bytes, slab.piece_bytes}};
}

std::optional<Range> Slabs::give(Slab* slab, std::uint64_t offset) {
  const std::uint64_t index = (offset - slab->range.offset) / slab->piece_bytes;
  slab->free[index / 64] |= std::uint64_t{1} << (index % 64);
  std::vector<Slab*>& open = open_[class_of(slab->piece_bytes)];
  if (slab->used-- == slab->pieces) {
    slab->at = open.size();
    open.push_back(slab);
  }
  // One that is empty stays where it is the only one with room: a loop over one small tensor makes no slabs.
  if (slab->used > 0 || open.size() == 1) return std::nullopt;
  return end(*slab);
}

std::vector<Range> Slabs::trim() {
  std::vector<Range> ranges;
  ranges.reserve(all_.size());
  for (std::size_t i = all_.size(); i-- > 0;) {
    if (all_[i]->used == 0) ranges.push_back(end(*all_[i]));
  }
  return ranges;
}

void Slabs::close(Slab& slab) {
  std::vector<Slab*>& open = open_[class_of(slab.piece_bytes)];
  open[slab.at] = open.back();
  open[slab.at]->at = slab.at;
  open.pop_back();
}

Range Slabs::end(Slab& slab) {
  close(slab);
  const Range range = slab.range;
  const std::size_t home = slab.home;
  std::swap(all_[home], all_.back());
  all_[home]->home = home;
  all_.pop_back();
  return range;
}

}  // namespace caldera::vulkan
