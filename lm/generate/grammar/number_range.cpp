#include "lm/generate/grammar/number_range.h"

#include <algorithm>
#include <string>

namespace caldera::grammar {
namespace {

constexpr std::int64_t kMost = 999999999999999999;  // 18 digits
constexpr int kDecimals = 12;

std::uint8_t at(const std::string& text, std::size_t i) { return static_cast<std::uint8_t>(text[i]); }

// The texts between two of equal length, digit by digit.
void add_digits(Rules& rules, StateId from, const std::string& low, const std::string& high, std::size_t i,
                StateId to) {
  if (i == low.size()) {
    rules.skip(from, to);
    return;
  }
  if (at(low, i) == at(high, i)) {
    add_digits(rules, rules.bytes(from, at(low, i), at(low, i)), low, high, i + 1, to);
    return;
  }
  const std::string zeros(low.size(), '0');
  const std::string nines(low.size(), '9');
  std::uint8_t first = at(low, i);
  std::uint8_t last = at(high, i);
  // A first or last digit that not everything may follow goes its own way.
  if (low.find_first_not_of('0', i + 1) != std::string::npos) {
    add_digits(rules, rules.bytes(from, first, first), low, nines, i + 1, to);
    ++first;
  }
  if (high.find_first_not_of('9', i + 1) != std::string::npos) {
    add_digits(rules, rules.bytes(from, last, last), zeros, high, i + 1, to);
    --last;
  }
  if (first <= last) add_digits(rules, rules.bytes(from, first, last), zeros, nines, i + 1, to);
}

// Whole numbers in [low, high], neither negative.
void add_magnitudes(Rules& rules, StateId from, std::int64_t low, std::int64_t high, StateId to) {
  while (low <= high) {
    const std::string first = std::to_string(low);
    std::int64_t last = 9;
    for (std::size_t digits = 1; digits < first.size(); ++digits) last = last * 10 + 9;
    last = std::min(last, high);
    add_digits(rules, from, first, std::to_string(last), 0, to);
    if (last == high) return;
    low = last + 1;
  }
}

// What follows a whole part: nothing or a fraction; one that is not zero; or nothing or zeros.
enum class Fraction : std::uint8_t { any, not_zero, zero };

void add_fraction(Rules& rules, StateId from, Fraction fraction, StateId to) {
  if (fraction != Fraction::not_zero) rules.skip(from, to);
  StateId zeros = rules.text(from, ".");
  if (fraction == Fraction::zero) {
    rules.text(zeros, "0", to);
    return;
  }
  StateId digits = kNone;  // behind a digit that is not zero, or any
  const std::uint8_t first = fraction == Fraction::any ? '0' : '1';
  for (int i = 0; i < kDecimals; ++i) {
    const StateId next = rules.bytes(zeros, first, '9');
    if (digits != kNone) rules.bytes(digits, '0', '9', next);
    rules.skip(next, to);
    if (fraction == Fraction::any) {
      zeros = next;
      continue;
    }
    digits = next;
    zeros = rules.bytes(zeros, '0', '0');
  }
}

// Numbers of magnitudes in [low, high], each bound in or out.
void add_fractions(Rules& rules, StateId from, std::int64_t low, bool open_low, std::int64_t high,
                   bool open_high, StateId to) {
  if (low > high || (low == high && (open_low || open_high))) return;
  const auto add = [&](std::int64_t first, std::int64_t last, Fraction fraction) {
    if (first > last) return;
    const StateId whole = rules.add_state();
    add_magnitudes(rules, from, first, last, whole);
    add_fraction(rules, whole, fraction, to);
  };
  if (low == high) return add(low, low, Fraction::zero);
  add(low, low, open_low ? Fraction::not_zero : Fraction::any);
  add(low + 1, high - 1, Fraction::any);
  if (!open_high) add(high, high, Fraction::zero);
}

}  // namespace

StateId add_integer_range(Rules& rules, StateId from, std::optional<std::int64_t> low,
                          std::optional<std::int64_t> high) {
  const std::int64_t least = std::max(low.value_or(-kMost), -kMost);
  const std::int64_t most = std::min(high.value_or(kMost), kMost);
  const StateId to = rules.add_state();
  add_magnitudes(rules, from, std::max<std::int64_t>(least, 0), most, to);
  if (least < 0 && least <= most)
    add_magnitudes(rules, rules.text(from, "-"), std::max<std::int64_t>(-most, 1), -least, to);
  return to;
}

StateId add_number_range(Rules& rules, StateId from, const NumberBounds& bounds) {
  const std::int64_t least = std::max(bounds.low.value_or(-kMost), -kMost);
  const std::int64_t most = std::min(bounds.high.value_or(kMost), kMost);
  const StateId to = rules.add_state();
  if (most >= 0)
    add_fractions(rules, from, std::max<std::int64_t>(least, 0), bounds.open_low && least >= 0, most,
                  bounds.open_high, to);
  // Zero has no sign here.
  if (least < 0)
    add_fractions(rules, rules.text(from, "-"), std::max<std::int64_t>(-most, 0),
                  most >= 0 || bounds.open_high, -least, bounds.open_low, to);
  return to;
}

}  // namespace caldera::grammar
