// RankedLogits: the tokens of a row of logits, the most likely first, put in order no further than one looks.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "lm/generate/sampling/logit_rows.h"

namespace caldera::detail {

struct RankedToken {
  float logit = 0;
  std::int32_t id = 0;
};

/// Tokens that are put in order piece by piece, as they are asked for: the most likely first, equals in the
/// order of their ids, so that the order does not depend on the library's sort.
class PartlyOrdered {
 public:
  std::vector<RankedToken>& clear();
  const RankedToken& at(std::size_t i) {
    if (i >= ordered_) order(i + 1);
    return tokens_[i];
  }

 private:
  void order(std::size_t count);

  std::vector<RankedToken> tokens_;
  std::size_t ordered_ = 0;  // the first are the most likely, in order
};

/// Finds how many of the most likely tokens meet a condition, and draws among them. Of a vocabulary of a
/// hundred thousand tokens most are never in order: they are counted in buckets of about equal logits, and
/// only the bucket where a count ends is looked into. Sums of buckets differ from sums in f64 by about 1e-7.
class RankedLogits {
 public:
  /// The first tokens in order, and the sum of their weights, exp((logit - best) / temperature).
  struct Cut {
    std::size_t count = 0;
    double sum = 0;
  };
  /// Holds the tokens of a cut whose information -log p is nearest to the entropy: buckets that are kept
  /// whole, and in order what is kept of those before and behind them.
  struct Typical {
    std::size_t first = 0;  ///< whole buckets: from the first to the one before the last
    std::size_t last = 0;
    std::vector<RankedToken> before, behind;
    double sum = 0;  ///< of weights
  };

  /// Looks at a row, of which `ends` are the ends, sound and not -infinity. The row is to stay as it is until
  /// the next one; what is ruled out by -infinity is passed over. `moments`: for typical().
  void take(std::span<const float> logits, const LogitEnds& ends, double temperature, bool moments = false);

  Cut all() const { return all_; }
  /// The first `count`, of those of all() at most.
  Cut first(std::size_t count);
  /// The fewest whose weights sum to `sum` at least, `within` at most.
  Cut reaching(double sum, const Cut& within);
  /// Counts those that have at least this weight, which is at most 1, `within` at most.
  Cut above(double weight, const Cut& within);
  /// The fewest `within` that are nearest to the entropy and have at least this share of its weights.
  Typical typical(double share, const Cut& within);
  /// The token in which the running sum of weights, those behind the first `passed` tokens, exceeds `point`,
  /// or the last one. `passed` is less than those within.
  RankedToken at(double point, const Cut& within, std::size_t passed = 0);
  RankedToken at(double point, const Typical& within);
  /// The tokens, in order.
  std::vector<RankedToken> list(const Cut& cut);
  std::vector<RankedToken> list(const Typical& kept);
  double weight(float logit) const { return std::exp(-nats_below(logit)); }

 private:
  struct Bucket {
    std::size_t place = 0;
    PartlyOrdered tokens;
  };

  double nats_below(float logit) const {
    return (static_cast<double>(rule_.best) - static_cast<double>(logit)) / temperature_;
  }
  void count_buckets(bool moments);
  double mean_below(const Cut& within);
  double sum_of(std::size_t first, std::size_t end) const;
  PartlyOrdered& tokens_of(std::size_t bucket);
  void gather(std::size_t first, std::size_t last, std::vector<RankedToken>& tokens);
  void gather(std::size_t first, std::size_t last, const Cut& within, std::vector<RankedToken>& tokens);
  std::size_t end_of(const Cut& cut, std::size_t& part) const;
  std::vector<RankedToken> ordered(std::size_t first, std::size_t end);
  template <class Skips, class Takes>
  Cut walk(std::size_t most, const Skips& skips, const Takes& takes);

  std::span<const float> logits_;
  double temperature_ = 1;
  LogitBuckets rule_;
  Cut all_;
  std::vector<std::uint16_t> places_;  // of each token; empty where there is one bucket
  std::vector<std::size_t> counts_;    // of each bucket
  std::vector<double> sums_;           // of its weights
  std::vector<double> moments_;        // of its weights times nats below the best
  std::vector<std::int32_t> found_;    // scratch
  std::vector<Bucket> known_;          // buckets that were looked into
  std::size_t known_count_ = 0;
};

}  // namespace caldera::detail
