#include "tests/catalogue/table/sample.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace caldera::catalogue {
namespace {

/// SplitMix64 (Steele, Lea and Flood 2014).
std::uint64_t mixed(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

std::uint64_t seed_of(const Operand& operand, std::size_t position) {
  std::uint64_t seed = mixed(position + 1);
  for (const std::int64_t extent : operand.shape) seed = mixed(seed ^ static_cast<std::uint64_t>(extent));
  return seed;
}

std::int64_t below(std::uint64_t random, std::int64_t count) {
  return static_cast<std::int64_t>(random % static_cast<std::uint64_t>(count));
}

/// The steps between the values that may be drawn, and how many there are.
struct Grid {
  double low, step;
  std::int64_t count;
};

Grid grid_of(const Range& range, DType type, std::int64_t elements) {
  double low = range.low, high = range.high, step = 1.0 / 64;
  if (is_floating(type)) {
    if (std::max(std::abs(low), std::abs(high)) > 2) step = 1.0 / 16;
  } else {
    step = 1;
    low = std::ceil(low * 4);
    high = std::floor(high * 4);
    if (is_unsigned(type)) low = std::max(low, 0.0);
  }
  auto count = std::max<std::int64_t>(1, static_cast<std::int64_t>((high - low) / step));
  if (range.distinct) count = std::max(count, elements);
  if (is_integral(type)) {  // all of them numbers that the type holds
    const auto highest = static_cast<double>(facts(type).highest);
    low = std::max(static_cast<double>(facts(type).lowest),
                   std::min(low, highest - static_cast<double>(count - 1)));
  }
  return {low, step, count};
}

}  // namespace

std::vector<double> values_of(const Operand& operand, std::size_t position, DType type) {
  const DType held = operand.dtype.value_or(type);
  if (!operand.values.empty()) return operand.values;
  const std::int64_t elements = operand.shape.numel();
  const Grid grid = grid_of(operand.range, held, elements);
  std::uint64_t state = seed_of(operand, position);
  std::vector<std::int64_t> order;
  if (operand.range.distinct && held != DType::boolean) {  // a random choice without repeats
    for (std::int64_t i = 0; i < grid.count; ++i) order.push_back(i);
    for (std::size_t i = order.size(); i-- > 1;) {
      state = mixed(state);
      std::swap(order[i], order[static_cast<std::size_t>(below(state, static_cast<std::int64_t>(i) + 1))]);
    }
  }
  std::vector<double> out;
  for (std::int64_t i = 0; i < elements; ++i) {
    state = mixed(state);
    if (held == DType::boolean) {
      out.push_back(static_cast<double>(state >> 63));
      continue;
    }
    const std::int64_t at = order.empty() ? below(state, grid.count) : order[static_cast<std::size_t>(i)];
    double value = grid.low + static_cast<double>(at) * grid.step;
    if (is_floating(held)) value += operand.range.offset;
    const double least =
        is_floating(held) ? operand.range.away_from_zero : (operand.range.away_from_zero > 0 ? 1.0 : 0.0);
    if (std::abs(value) < least) value = value < 0 ? -least : least;
    out.push_back(value);
  }
  return out;
}

std::string Sample::to_string() const {
  std::string shapes;
  for (const Operand& operand : operands) {
    shapes += fmt::format("{}{}", shapes.empty() ? "" : ", ", operand.shape.to_string());
    if (operand.dtype) shapes += fmt::format(" {}", name(*operand.dtype));
  }
  const std::string named = arguments.to_string();
  return named.empty() ? shapes : fmt::format("{}: {}", shapes, named);
}

}  // namespace caldera::catalogue
