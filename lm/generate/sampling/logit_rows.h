// Loops over rows of logits, by vectors; the same results on every processor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace caldera::detail {

/// Holds the ends of a row. Of no logits, or those alone that are -infinity, `most` is -infinity.
struct LogitEnds {
  float most = 0;
  float least = 0;    ///< of those that are not -infinity
  bool sound = true;  ///< none is NaN or +infinity
};
LogitEnds ends_of(std::span<const float> logits);

/// Makes the logits -infinity that are not of a set, of which id i is bit i % 64 of word i / 64; those beyond
/// the last word are not.
void rule_out(std::span<float> logits, std::span<const std::uint64_t> allowed);

/// Says how logits are put into buckets: bucket i holds those that are i to i + 1 times 1/scale below `best`.
struct LogitBuckets {
  static constexpr std::uint16_t kCount = 2048;
  /// Counts buckets of what is further below `best`, kCount and the next ones, taken in turns: counts that
  /// are added up need not wait for each other.
  static constexpr std::uint16_t kTurns = 8;
  static constexpr std::uint16_t kRuledOut = kCount + kTurns;  ///< of -infinity
  /// Shares are told in units of 1 / kUnits.
  static constexpr std::int32_t kUnits = 1 << 24;

  float best = 0;
  float scale = 0;
  float nats = 0;  ///< what a bucket's width is in -log of weights, exp((logit - best) / temperature)
};

/// Holds what weigh() writes of each logit: spans of one size.
struct WeighedRow {
  std::span<std::uint16_t> buckets;
  /// The weight as a share of the largest that its bucket may hold, whole units.
  std::span<std::int32_t> shares;
  /// The share times the part of the bucket's width that the logit is below its upper end; empty: not told.
  std::span<std::int32_t> moments;
};

/// Weighs logits, none of which is NaN or +infinity.
void weigh(std::span<const float> logits, const LogitBuckets& rule, const WeighedRow& row);

/// Writes the indices of buckets from `low` to `high`, and returns how many there are. `found` has room for
/// as many as there are buckets.
std::size_t find_buckets(std::span<const std::uint16_t> buckets, std::uint16_t low, std::uint16_t high,
                         std::span<std::int32_t> found);

}  // namespace caldera::detail
