#include "lm/generate/sampling/ranked_logits.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace caldera::detail {
namespace {

// Rows below this size are one bucket: there is nothing to gain.
constexpr std::size_t kSmallRow = 2048;
constexpr std::size_t kBlock = 1024;
constexpr std::size_t kPlaces = LogitBuckets::kRuledOut + 1;
constexpr std::size_t kFar = LogitBuckets::kCount;
constexpr std::size_t kBuckets = kFar + 1;

bool comes_first(const RankedToken& a, const RankedToken& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

/// Buckets reach as far as weights count, and further, as top-k counts other tokens too, while they are not
/// so wide that shares of them get small.
LogitBuckets buckets_for(const LogitEnds& ends, double temperature) {
  constexpr double kNats = 32;
  constexpr double kUsualSpread = 24;
  constexpr double kWidest = 0.5;
  const double spread = static_cast<double>(ends.most) - ends.least;
  const double wide = std::max(kNats, std::min(kUsualSpread / temperature, kWidest * kFar)) * temperature;
  const double scale = kFar / std::max(std::min(spread, wide), 1e-30);
  return {.best = ends.most,
          .scale = static_cast<float>(scale),
          .nats = static_cast<float>(std::min(1 / (scale * temperature), 1e30))};
}

}  // namespace

std::vector<RankedToken>& PartlyOrdered::clear() {
  ordered_ = 0;
  tokens_.clear();
  return tokens_;
}

void PartlyOrdered::order(std::size_t count) {
  constexpr std::size_t kLeast = 64;
  // As equals are gathered.
  if (ordered_ == 0 && std::is_sorted(tokens_.begin(), tokens_.end(), comes_first)) {
    ordered_ = tokens_.size();
    return;
  }
  count = std::min(std::max({count, 4 * ordered_, kLeast}), tokens_.size());
  const auto at = [&](std::size_t i) { return tokens_.begin() + static_cast<std::ptrdiff_t>(i); };
  if (count < tokens_.size()) std::nth_element(at(ordered_), at(count), tokens_.end(), comes_first);
  std::sort(at(ordered_), at(count), comes_first);
  ordered_ = count;
}

void RankedLogits::take(std::span<const float> logits, const LogitEnds& ends, double temperature,
                        bool moments) {
  logits_ = logits;
  temperature_ = temperature;
  rule_ = buckets_for(ends, temperature);
  known_count_ = 0;
  all_ = {};
  places_.clear();
  if (logits.size() >= kSmallRow) return count_buckets(moments);
  std::vector<RankedToken>& tokens = tokens_of(0).clear();
  double moment = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    if (!std::isfinite(logits[i])) continue;
    tokens.push_back({logits[i], static_cast<std::int32_t>(i)});
    const double w = weight(logits[i]);
    all_.sum += w;
    moment += w * nats_below(logits[i]);
  }
  all_.count = tokens.size();
  counts_.assign(1, all_.count);
  sums_.assign(1, all_.sum);
  moments_.assign(1, moment);
}

void RankedLogits::count_buckets(bool moments) {
  // A count and a sum of shares in one number: they are added at once.
  constexpr unsigned kCountBit = 44;
  constexpr std::uint64_t kOne = std::uint64_t{1} << kCountBit;
  places_.resize(logits_.size());
  std::array<std::uint64_t, kPlaces> totals{};
  std::array<std::uint64_t, kPlaces> of_moments{};
  std::array<std::int32_t, kBlock> shares;
  std::array<std::int32_t, kBlock> parts;
  for (std::size_t begin = 0; begin < logits_.size(); begin += kBlock) {
    const std::size_t count = std::min(kBlock, logits_.size() - begin);
    const std::span<std::uint16_t> places = std::span(places_).subspan(begin, count);
    weigh(logits_.subspan(begin, count), rule_,
          {.buckets = places,
           .shares = std::span(shares).first(count),
           .moments = std::span(parts).first(moments ? count : 0)});
    for (std::size_t i = 0; i < count; ++i) totals[places[i]] += kOne + static_cast<std::uint32_t>(shares[i]);
    for (std::size_t i = 0; moments && i < count; ++i)
      of_moments[places[i]] += static_cast<std::uint32_t>(parts[i]);
  }
  for (std::size_t turn = kFar + 1; turn < LogitBuckets::kRuledOut; ++turn) {
    totals[kFar] += totals[turn];
    of_moments[kFar] += of_moments[turn];
  }
  counts_.resize(kBuckets);
  sums_.resize(kBuckets);
  moments_.resize(kBuckets);
  const double width = static_cast<double>(rule_.nats);
  const double step = std::exp(-width);
  double unit = 0;
  for (std::size_t b = 0; b < kBuckets; ++b) {
    constexpr std::size_t kAfresh = 32;
    unit = b % kAfresh == 0 ? std::exp(-static_cast<double>(b) * width) / LogitBuckets::kUnits : unit * step;
    const auto sum = static_cast<double>(totals[b] & (kOne - 1));
    counts_[b] = totals[b] >> kCountBit;
    sums_[b] = unit * sum;
    moments_[b] = unit * width * (static_cast<double>(b) * sum + static_cast<double>(of_moments[b]));
    all_.count += counts_[b];
    all_.sum += sums_[b];
  }
}

/// Adds the tokens of buckets `first` to `last`, in the order of their ids.
void RankedLogits::gather(std::size_t first, std::size_t last, std::vector<RankedToken>& tokens) {
  found_.resize(places_.size());
  const std::size_t high = last < kFar ? last : LogitBuckets::kRuledOut - 1;
  const std::size_t count =
      find_buckets(places_, static_cast<std::uint16_t>(first), static_cast<std::uint16_t>(high), found_);
  for (std::size_t i = 0; i < count; ++i)
    tokens.push_back({logits_[static_cast<std::size_t>(found_[i])], found_[i]});
}

PartlyOrdered& RankedLogits::tokens_of(std::size_t bucket) {
  for (std::size_t i = 0; i < known_count_; ++i)
    if (known_[i].place == bucket) return known_[i].tokens;
  if (known_count_ == known_.size()) known_.emplace_back();
  Bucket& added = known_[known_count_++];
  added.place = bucket;
  std::vector<RankedToken>& tokens = added.tokens.clear();
  if (!places_.empty()) gather(bucket, bucket, tokens);
  return added.tokens;
}

/// Goes along the order: over buckets where `skips(cut, bucket)`, and over tokens where `takes(cut, weight)`,
/// until one is not to be taken.
template <class Skips, class Takes>
RankedLogits::Cut RankedLogits::walk(std::size_t most, const Skips& skips, const Takes& takes) {
  Cut cut;
  for (std::size_t b = 0; b < counts_.size() && cut.count < most; ++b) {
    const std::size_t count = counts_[b];
    if (count == 0) continue;
    if (cut.count + count <= most && skips(cut, b)) {
      cut.count += count;
      cut.sum += sums_[b];
      continue;
    }
    PartlyOrdered& tokens = tokens_of(b);
    for (std::size_t i = 0; i < count && cut.count < most; ++i) {
      const double w = weight(tokens.at(i).logit);
      if (!takes(cut, w)) return cut;
      ++cut.count;
      cut.sum += w;
    }
  }
  return cut;
}

RankedLogits::Cut RankedLogits::first(std::size_t count) {
  if (count >= all_.count) return all_;
  return walk(
      count, [](const Cut&, std::size_t) { return true; }, [](const Cut&, double) { return true; });
}

RankedLogits::Cut RankedLogits::reaching(double sum, const Cut& within) {
  return walk(
      within.count, [&](const Cut& cut, std::size_t b) { return cut.sum + sums_[b] < sum; },
      [&](const Cut& cut, double) { return cut.sum < sum; });
}

RankedLogits::Cut RankedLogits::above(double weight, const Cut& within) {
  // The bucket of the bound, give or take one.
  const double bound = places_.empty() ? 0 : std::floor(-std::log(weight) / static_cast<double>(rule_.nats));
  return walk(
      within.count, [&](const Cut&, std::size_t b) { return static_cast<double>(b + 1) < bound; },
      [&](const Cut&, double w) { return w >= weight; });
}

/// The first bucket that is not wholly in a cut, and how many tokens of it are.
std::size_t RankedLogits::end_of(const Cut& cut, std::size_t& part) const {
  std::size_t b = 0;
  part = cut.count;
  for (; b < counts_.size() && counts_[b] <= part; ++b) part -= counts_[b];
  return b;
}

/// Adds the tokens of buckets `first` to `last` that are in a cut.
void RankedLogits::gather(std::size_t first, std::size_t last, const Cut& within,
                          std::vector<RankedToken>& tokens) {
  std::size_t part = 0;
  const std::size_t end = end_of(within, part);
  if (first < std::min(last + 1, end)) gather(first, std::min(last + 1, end) - 1, tokens);
  for (std::size_t i = 0; first <= end && end <= last && i < part; ++i)
    tokens.push_back(tokens_of(end).at(i));
}

double RankedLogits::sum_of(std::size_t first, std::size_t end) const {
  double sum = 0;
  for (std::size_t b = first; b < end; ++b) sum += sums_[b];
  return sum;
}

/// The mean of nats below the best, by weight: as far below the log of all weights' sum as the entropy says.
double RankedLogits::mean_below(const Cut& within) {
  std::size_t part = 0;
  const std::size_t end = end_of(within, part);
  double moment = 0;
  for (std::size_t b = 0; b < end; ++b) moment += moments_[b];
  for (std::size_t i = 0; i < part; ++i) {
    const float logit = tokens_of(end).at(i).logit;
    moment += weight(logit) * nats_below(logit);
  }
  return moment / within.sum;
}

RankedLogits::Typical RankedLogits::typical(double share, const Cut& within) {
  const double centre = mean_below(within);
  const double least = share * within.sum;
  std::size_t part = 0;
  const std::size_t end = end_of(within, part);
  Typical kept;
  std::vector<RankedToken> near;
  if (places_.empty()) {
    for (std::size_t i = 0; i < within.count; ++i) near.push_back(tokens_of(0).at(i));
  } else {
    // Buckets that are wholly within `narrow` widths of the centre have too little, those within `wide`
    // enough: what is kept ends between `narrow` - 1 and `wide`.
    const double place = centre / static_cast<double>(rule_.nats);
    const auto whole = static_cast<double>(std::min(end, kFar));
    const auto low = [&](double width) {
      return static_cast<std::size_t>(std::clamp(std::ceil(place - width), 0.0, whole));
    };
    const auto high = [&](double width) {
      return static_cast<std::size_t>(std::clamp(std::floor(place + width), 0.0, whole));
    };
    double narrow = 0, wide = kBuckets;
    while (wide - narrow > 1) {
      const double middle = std::floor((narrow + wide) / 2);
      (sum_of(low(middle), high(middle)) < least ? narrow : wide) = middle;
    }
    const double sure = std::max(narrow - 1, 0.0);
    kept.first = low(sure);
    kept.last = std::max(high(sure), kept.first);
    kept.sum = sum_of(kept.first, kept.last);
    if (kept.first > 0) gather(low(wide + 2), kept.first - 1, within, near);
    gather(kept.last, high(wide + 2), within, near);
  }
  std::vector<std::pair<double, RankedToken>> by_distance;
  by_distance.reserve(near.size());
  for (const RankedToken& token : near)
    by_distance.emplace_back(std::abs(nats_below(token.logit) - centre), token);
  std::sort(by_distance.begin(), by_distance.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : comes_first(a.second, b.second);
  });
  const bool none = kept.first == kept.last;
  for (const auto& [distance, token] : by_distance) {
    const bool is_first = none && kept.before.empty() && kept.behind.empty();
    if (kept.sum >= least && !is_first) break;
    kept.sum += weight(token.logit);
    (nats_below(token.logit) < centre ? kept.before : kept.behind).push_back(token);
  }
  std::sort(kept.before.begin(), kept.before.end(), comes_first);
  std::sort(kept.behind.begin(), kept.behind.end(), comes_first);
  return kept;
}

RankedToken RankedLogits::at(double point, const Cut& within, std::size_t passed) {
  std::size_t seen = 0;
  RankedToken token;
  for (std::size_t b = 0; b < counts_.size() && seen < within.count; ++b) {
    const std::size_t count = counts_[b];
    if (count == 0) continue;
    if (seen + count <= passed) {
      seen += count;
      continue;
    }
    // The bucket where the cut ends is looked into: where rounding left a remainder, its last token is meant.
    if (seen >= passed && seen + count < within.count && point >= sums_[b]) {
      seen += count;
      point -= sums_[b];
      continue;
    }
    PartlyOrdered& tokens = tokens_of(b);
    double w = 0;
    bool known = false;
    for (std::size_t i = 0; i < count && seen < within.count; ++i, ++seen) {
      if (seen < passed) continue;
      // Of equals the weight is known.
      if (!known || tokens.at(i).logit != token.logit) w = weight(tokens.at(i).logit);
      known = true;
      token = tokens.at(i);
      point -= w;
      if (point < 0) return token;
    }
  }
  return token;
}

RankedToken RankedLogits::at(double point, const Typical& within) {
  RankedToken token;
  const auto is_in = [&](const RankedToken& next) {
    token = next;
    point -= weight(token.logit);
    return point < 0;
  };
  for (const RankedToken& next : within.before)
    if (is_in(next)) return token;
  for (std::size_t b = within.first; b < within.last; ++b) {
    const bool is_last = b + 1 == within.last && within.behind.empty();
    if (point >= sums_[b] && !is_last) {
      point -= sums_[b];
      continue;
    }
    PartlyOrdered& tokens = tokens_of(b);
    for (std::size_t i = 0; i < counts_[b]; ++i)
      if (is_in(tokens.at(i))) return token;
  }
  for (const RankedToken& next : within.behind)
    if (is_in(next)) return token;
  return token;
}

/// The tokens of buckets from `first` to the one before `end`, in order.
std::vector<RankedToken> RankedLogits::ordered(std::size_t first, std::size_t end) {
  std::vector<RankedToken> tokens;
  if (first >= end) return tokens;
  // Buckets in their order, and each of them sorted for itself.
  std::vector<RankedToken> gathered;
  gather(first, end - 1, gathered);
  std::vector<std::size_t> next(end - first);
  std::size_t size = 0;
  for (std::size_t b = first; b < end; ++b) next[b - first] = std::exchange(size, size + counts_[b]);
  tokens.resize(size);
  for (const RankedToken& token : gathered) {
    const std::size_t place = std::min<std::size_t>(places_[static_cast<std::size_t>(token.id)], kFar);
    tokens[next[place - first]++] = token;
  }
  auto begin = tokens.begin();
  for (std::size_t b = first; b < end; ++b) {
    const auto last = tokens.begin() + static_cast<std::ptrdiff_t>(next[b - first]);
    std::sort(begin, last, comes_first);
    begin = last;
  }
  return tokens;
}

std::vector<RankedToken> RankedLogits::list(const Cut& cut) {
  std::vector<RankedToken> tokens;
  std::size_t part = cut.count;
  std::size_t end = 0;
  if (!places_.empty()) {
    end = end_of(cut, part);
    tokens = ordered(0, end);
  }
  for (std::size_t i = 0; i < part; ++i) tokens.push_back(tokens_of(end).at(i));
  return tokens;
}

std::vector<RankedToken> RankedLogits::list(const Typical& kept) {
  std::vector<RankedToken> tokens = kept.before;
  const std::vector<RankedToken> whole = ordered(kept.first, kept.last);
  tokens.insert(tokens.end(), whole.begin(), whole.end());
  tokens.insert(tokens.end(), kept.behind.begin(), kept.behind.end());
  return tokens;
}

}  // namespace caldera::detail
