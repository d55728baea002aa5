// FreeSpace: the free runs of an arena that may grow.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace caldera {

/// Best fit; neighbours merge.
class FreeSpace {
 public:
  /// The offset of `bytes` that are taken from the smallest run with room for them; where there is none, the
  /// arena grows at its end.
  std::int64_t take(std::int64_t bytes);
  void give(std::int64_t offset, std::int64_t bytes);

  /// The length of the run that take(bytes) would take them from; nothing where the arena would grow.
  std::optional<std::int64_t> fit(std::int64_t bytes) const;
  /// Returns where the arena would end once it has grown for `bytes`.
  std::int64_t grown(std::int64_t bytes) const { return growth_offset() + bytes; }
  std::int64_t end() const { return end_; }

 private:
  /// The end, or where the last free run begins if it touches the end.
  std::int64_t growth_offset() const;
  void add(std::int64_t offset, std::int64_t bytes);
  void remove(std::int64_t offset, std::int64_t bytes);

  std::map<std::int64_t, std::int64_t> by_offset_;
  std::set<std::pair<std::int64_t, std::int64_t>> by_size_;  // (size, offset)
  std::int64_t end_ = 0;
};

}  // namespace caldera
