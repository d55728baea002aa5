#include "lm/generate/grammar/decimal_range.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <tuple>

namespace caldera::grammar {
namespace {

constexpr std::int64_t kMostUnits = 999999999999999999;  // 18 digits
constexpr int kMostDecimals = 12;

std::int64_t power_of_ten(int exponent) {
  std::int64_t result = 1;
  for (int i = 0; i < exponent; ++i) result *= 10;
  return result;
}

/// Magnitudes of one sign: a state for the digits that are left, the remainder of those before, and whether
/// they are those of a bound.
class MagnitudeWriter {
 public:
  MagnitudeWriter(Rules& rules, const DecimalRange& range, StateId to)
      : rules_(rules), range_(range), to_(to) {}

  void write(StateId from, std::int64_t low, std::int64_t high) {
    const int least = range_.decimals + 1;
    for (int length = least; length <= 18; ++length) {
      // A zero is a first digit only where it stands alone in front of the point.
      const std::int64_t first = std::max(low, length == least ? 0 : power_of_ten(length - 1));
      const std::int64_t last = std::min(high, power_of_ten(length) - 1);
      if (first > last) continue;
      low_ = fmt::format("{:0{}}", first, length);
      high_ = fmt::format("{:0{}}", last, length);
      bound_.clear();
      rules_.skip(from, state_of({length, 0, true, true}));
    }
  }

 private:
  struct Key {
    int left;
    std::int64_t rest;
    bool low;  // the digits so far are those of the bound
    bool high;
    auto operator<=>(const Key&) const = default;  // NOLINT(modernize-use-nullptr): of the comparison
  };

  StateId state_of(const Key& key) {
    // What is no bound's is the same for all lengths.
    std::map<Key, StateId>& known = key.low || key.high ? bound_ : free_;
    const auto [found, is_new] = known.try_emplace(key, kNone);
    if (!is_new) return found->second;
    const StateId state = rules_.add_state();
    found->second = state;
    fill(state, key);
    return state;
  }

  void fill(StateId state, const Key& key) {
    if (key.left == 0) {
      if (key.rest != 0) return;
      rules_.skip(state, to_);
      if (range_.more) add_more(state);
      return;
    }
    const std::size_t at = low_.size() - static_cast<std::size_t>(key.left);
    // Zeros that end a fraction may be left out.
    const bool ends = at > 0 && key.left <= range_.decimals && zeros_fit(key, at);
    if (ends) rules_.skip(state, to_);
    const StateId digit = at > 0 && key.left == range_.decimals ? rules_.text(state, ".") : state;
    const char first = key.low ? low_[at] : '0';
    const char last = key.high ? high_[at] : '9';
    for (char d = first; d <= last; ++d) {
      const Key next{key.left - 1, (key.rest * 10 + (d - '0')) % range_.step, key.low && d == first,
                     key.high && d == last};
      rules_.bytes(digit, static_cast<std::uint8_t>(d), static_cast<std::uint8_t>(d), state_of(next));
    }
  }

  bool zeros_fit(const Key& key, std::size_t at) const {
    if (key.low && low_.find_first_not_of('0', at) != std::string::npos) return false;
    std::int64_t rest = key.rest;
    for (int i = 0; i < key.left; ++i) rest = rest * 10 % range_.step;
    return rest == 0;
  }

  void add_more(StateId state) {
    StateId digits = range_.decimals == 0 ? rules_.text(state, ".") : state;
    for (int i = range_.decimals; i < kMostDecimals + 1; ++i) {
      digits = rules_.bytes(digits, '0', '9');
      rules_.skip(digits, to_);
    }
  }

  Rules& rules_;
  const DecimalRange& range_;
  StateId to_;
  std::string low_, high_;  // the bounds' digits, of one length
  std::map<Key, StateId> free_, bound_;
};

}  // namespace

StateId add_decimal_range(Rules& rules, StateId from, const DecimalRange& range) {
  const StateId to = rules.add_state();
  const std::int64_t low = std::max(range.low, -kMostUnits);
  const std::int64_t high = std::min(range.high, kMostUnits);
  const auto add = [&](StateId begin, std::int64_t least, std::int64_t most) {
    if (least > most) return;
    if (!range.more) return MagnitudeWriter(rules, range, to).write(begin, least, most);
    // Up to the bound, and the bound itself.
    if (least < most) MagnitudeWriter(rules, range, to).write(begin, least, most - 1);
    DecimalRange exact = range;
    exact.more = false;
    MagnitudeWriter(rules, exact, to).write(begin, most, most);
  };
  if (high >= 0) add(from, std::max<std::int64_t>(low, 0), high);
  // Zero has no sign, unless digits follow it.
  const std::int64_t least = std::max<std::int64_t>(-high, range.more ? 0 : 1);
  if (low < 0 && low <= high) add(rules.text(from, "-"), least, -low);
  return to;
}

std::optional<Decimal> decimal_of(double value) {
  if (!std::isfinite(value) || std::abs(value) > 1e15) return std::nullopt;
  // The fewest digits that are this number.
  std::string text = fmt::format("{:.15f}", value);
  for (int digits = 0; digits <= 15; ++digits) {
    text = fmt::format("{:.{}f}", value, digits);
    if (std::stod(text) != value) continue;
    if (digits > kMostDecimals) return std::nullopt;
    std::erase(text, '.');
    if (text.size() > 17) return std::nullopt;
    return Decimal{std::stoll(text), digits};
  }
  return std::nullopt;
}

std::optional<std::int64_t> in_units(const Decimal& value, int decimals) {
  std::int64_t digits = value.digits;
  for (int i = value.decimals; i < decimals; ++i) {
    if (std::abs(digits) > kMostUnits / 10) return std::nullopt;
    digits *= 10;
  }
  return digits;
}

}  // namespace caldera::grammar
