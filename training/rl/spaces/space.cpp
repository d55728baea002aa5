#include "training/rl/spaces/space.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "engine/base/error.h"

namespace caldera::rl {
namespace {

std::vector<double> last_of(const std::vector<std::int64_t>& counts) {
  if (counts.empty()) throw ValueError("space: there is no choice in it; name at least one");
  std::vector<double> last;
  for (const std::int64_t count : counts) {
    if (count < 1) throw ValueError(fmt::format("space: a choice of {} values; it needs at least 1", count));
    last.push_back(static_cast<double>(count - 1));
  }
  return last;
}

double draw_between(Random& random, double low, double high) {
  if (std::isfinite(low) && std::isfinite(high)) return random.uniform(low, high);
  if (std::isfinite(low)) return low - std::log(1 - random.uniform());
  if (std::isfinite(high)) return high + std::log(1 - random.uniform());
  return random.normal();
}

}  // namespace

Space::Space(Kind kind, std::vector<double> low, std::vector<double> high, std::vector<std::int64_t> counts)
    : kind_(kind), low_(std::move(low)), high_(std::move(high)), counts_(std::move(counts)) {
  if (low_.size() != high_.size())
    throw ShapeError(
        fmt::format("space: {} lower bounds and {} upper ones; give as many", low_.size(), high_.size()));
  if (low_.empty()) throw ValueError("space: it has no number; name at least one bound");
  for (std::size_t i = 0; i < low_.size(); ++i)
    if (!(low_[i] <= high_[i]))
      throw ValueError(
          fmt::format("space: the bounds [{}, {}] of number {} hold nothing", low_[i], high_[i], i));
}

void Space::sample(Random& random, std::span<double> value) const {
  if (value.size() != low_.size())
    throw ShapeError(fmt::format("{}: sample into {} numbers; it has {}", to_string(), value.size(), size()));
  for (std::size_t i = 0; i < value.size(); ++i)
    value[i] = is_continuous() ? draw_between(random, low_[i], high_[i])
                               : static_cast<double>(random.below(counts_[i]));
}

std::vector<double> Space::sample(Random& random) const {
  std::vector<double> value(low_.size());
  sample(random, value);
  return value;
}

bool Space::contains(std::span<const double> value) const {
  if (value.size() != low_.size()) return false;
  for (std::size_t i = 0; i < value.size(); ++i)
    if (!(value[i] >= low_[i] && value[i] <= high_[i]) ||
        (!is_continuous() && value[i] != std::floor(value[i])))
      return false;
  return true;
}

std::int64_t Space::flat_size() const {
  if (is_continuous()) return size();
  std::int64_t total = 0;
  for (const std::int64_t count : counts_) total += count;
  return total;
}

std::vector<double> Space::flatten(std::span<const double> value) const {
  if (!contains(value))
    throw ValueError(fmt::format("{}: ({}) is not in it", to_string(), fmt::join(value, ", ")));
  if (is_continuous()) return {value.begin(), value.end()};
  std::vector<double> flat(static_cast<std::size_t>(flat_size()));
  std::size_t at = 0;
  for (std::size_t i = 0; i < value.size(); ++i) {
    flat[at + static_cast<std::size_t>(value[i])] = 1;
    at += static_cast<std::size_t>(counts_[i]);
  }
  return flat;
}

std::vector<double> Space::unflatten(std::span<const double> flat) const {
  if (static_cast<std::int64_t>(flat.size()) != flat_size())
    throw ShapeError(
        fmt::format("{}: unflatten of {} numbers; it has {}", to_string(), flat.size(), flat_size()));
  if (is_continuous()) return {flat.begin(), flat.end()};
  std::vector<double> value;
  auto at = flat.begin();
  for (const std::int64_t count : counts_) {
    value.push_back(static_cast<double>(std::max_element(at, at + count) - at));
    at += count;
  }
  return value;
}

std::string Space::to_string() const {
  if (kind_ == Kind::box) return fmt::format("Box({})", size());
  return fmt::format("{}({})", kind_ == Kind::discrete ? "Discrete" : "MultiDiscrete",
                     fmt::join(counts_, ", "));
}

Box::Box(std::vector<double> low, std::vector<double> high)
    : Space(Kind::box, std::move(low), std::move(high), {}) {}

Box::Box(double low, double high, std::int64_t size)
    : Box(std::vector<double>(static_cast<std::size_t>(std::max<std::int64_t>(size, 0)), low),
          std::vector<double>(static_cast<std::size_t>(std::max<std::int64_t>(size, 0)), high)) {}

Discrete::Discrete(std::int64_t count) : Space(Kind::discrete, {0}, last_of({count}), {count}) {}

MultiDiscrete::MultiDiscrete(const std::vector<std::int64_t>& counts)
    : Space(Kind::multi_discrete, std::vector<double>(counts.size()), last_of(counts), counts) {}

}  // namespace caldera::rl
