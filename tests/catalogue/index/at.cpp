// The entries of the family `at`.
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "ops/ops.h"
#include "tests/catalogue/table/families.h"
#include "tests/catalogue/table/samples.h"

namespace caldera::catalogue {
namespace {

using Results = std::vector<LazyTensor>;
using Integers = Arguments::Integers;

/// Bounds that are absent are written as this.
constexpr std::int64_t kNone = 99;

struct Method {
  const char* name;
  LazyTensor (At::*change)(const LazyTensor&) const;
};
constexpr Method kMethods[] = {{"add", &At::add},
                               {"set", &At::set},
                               {"multiply", &At::multiply},
                               {"minimum", &At::minimum},
                               {"maximum", &At::maximum}};

Results call_at(Tensors x, const Arguments& a) {
  std::vector<Slice> slices;
  const Integers start = a.integers("start"), stop = a.integers("stop"), step = a.integers("step");
  for (std::size_t i = 0; i < std::min({start.size(), stop.size(), step.size()}); ++i) {
    Slice s{.step = step[i]};
    if (start[i] != kNone) s.start = start[i];
    if (stop[i] != kNone) s.stop = stop[i];
    slices.push_back(s);
  }
  const At part = at(x[0], slices);
  for (const Method& method : kMethods) {
    if (a.text("method", "get") == method.name) return {(part.*method.change)(x[1])};
  }
  return {part.get()};
}

struct Selection {
  Shape x, values;
  Integers start, stop, step;
};
const std::vector<Selection>& selections() {
  static const std::vector<Selection> kAll = {
      {{6}, {2}, {2}, {4}, {1}},
      {{7}, {}, {kNone}, {kNone}, {3}},
      {{4, 5}, {2, 2}, {1, -3}, {3, kNone}, {1, 2}},
      {{4, 5}, {5}, {-2}, {kNone}, {1}},
      {{4, 5}, {2, 1}, {0, 1}, {kNone, 5}, {2, 1}},
      {{2, 3, 4}, {2, 1, 2}, {0, 1, 3}, {kNone, 2, kNone}, {1, 1, -2}},
      {{6}, {6}, {kNone}, {kNone}, {-1}},
      {{5}, {}, {3}, {3}, {1}},
      {{0, 3}, {1}, {kNone, 1}, {kNone, 2}, {1, 1}},
      {{3, 2}, {3, 2}, {}, {}, {}},
  };
  return kAll;
}

std::vector<Sample> at_samples(const Operation& operation) {
  std::vector<Sample> out;
  for (const Selection& s : selections()) {
    for (const Method& method : kMethods) {
      out.push_back(
          {{{s.x, operation.ranges[0]}, {s.values, operation.ranges[1]}},
           {{"start", s.start}, {"stop", s.stop}, {"step", s.step}, {"method", std::string(method.name)}}});
    }
    out.push_back({{{s.x, operation.ranges[0]}},
                   {{"start", s.start}, {"stop", s.stop}, {"step", s.step}, {"method", std::string("get")}}});
  }
  return out;
}

std::vector<ErrorSample> at_errors(const Operation&) {
  const auto set = [](Integers start, Integers stop, Integers step) -> Arguments {
    return {{"start", std::move(start)},
            {"stop", std::move(stop)},
            {"step", std::move(step)},
            {"method", std::string("set")}};
  };
  return {{Refusal::shape, {{{4}}, {{3}}}, set({0}, {2}, {1}), "(3,)"},
          {Refusal::shape, {{{4}}, {{2, 2}}}, set({0}, {2}, {1}), "(2, 2)"},
          {Refusal::shape, {{{4}}, {{}}}, set({0, 0}, {1, 1}, {1, 1}), "2 slices"},
          {Refusal::value, {{{4}}, {{}}}, set({0}, {2}, {0}), "step"}};
}

// ---- index tensors: ops/index/at_tensors.cpp

Operand indices(const Shape& shape, std::vector<double> values) {
  return {.shape = shape, .dtype = DType::i32, .values = std::move(values)};
}

struct Named {
  Shape x;
  std::vector<Operand> indices;
  Shape values;  // for index_put
};
const std::vector<Named>& named() {
  static const std::vector<Named> kAll = {
      {{5}, {indices({3}, {4, 0, -1})}, {3}},
      {{5}, {indices({}, {-2})}, {}},
      {{4, 3}, {indices({2, 2}, {3, -4, 0, 3})}, {2, 2, 3}},
      {{4, 3}, {indices({3}, {3, 0, -1}), indices({3}, {-3, 2, 0})}, {}},
      {{4, 3}, {indices({2, 1}, {3, 1}), indices({2}, {0, -1})}, {2, 2}},
      {{2, 3, 4}, {indices({3}, {1, 0, 1}), indices({}, {2})}, {1, 4}},
      {{2, 3, 2}, {indices({2}, {1, 0}), indices({2}, {2, 2}), indices({2}, {-1, 0})}, {2}},
      {{2, 3}, {indices({0}, {})}, {3}},
  };
  return kAll;
}
struct How {
  const char* name;
  Scatter scatter;
};
constexpr How kHows[] = {
    {"set", Scatter::set}, {"add", Scatter::add}, {"max", Scatter::maximum}, {"min", Scatter::minimum}};

Results call_index(Tensors x, const Arguments&) { return {caldera::index(x[0], {x.begin() + 1, x.end()})}; }
Results call_index_put(Tensors x, const Arguments& a) {
  for (const How& how : kHows) {
    if (a.text("how", "set") == how.name)
      return {caldera::index_put(x[0], {x.begin() + 1, x.end() - 1}, x.back(), how.scatter)};
  }
  throw Error("index_put: no such way to combine values");
}

std::vector<Sample> index_samples(const Operation& operation) {
  std::vector<Sample> out;
  for (const Named& n : named()) {
    out.push_back({{{n.x, operation.ranges[0]}}});
    out.back().operands.insert(out.back().operands.end(), n.indices.begin(), n.indices.end());
  }
  return out;
}
std::vector<Sample> index_put_samples(const Operation& operation) {
  std::vector<Sample> out;
  for (const How& how : kHows) {
    const std::vector<Sample> read = index_samples(operation);
    for (std::size_t i = 0; i < read.size(); ++i) {
      Sample sample = read[i];
      sample.operands.push_back({named()[i].values, operation.ranges[1]});
      sample.arguments.set("how", std::string(how.name));
      out.push_back(std::move(sample));
    }
    // Outside of an axis: dropped, whatever the other index.
    out.push_back({{{{2, 3}, operation.ranges[0]},
                    indices({4}, {0, 2, -3, 1}),
                    indices({4}, {3, 1, 0, -1}),
                    {{4}, operation.ranges[1]}},
                   {{"how", std::string(how.name)}}});
  }
  return out;
}

std::vector<ErrorSample> index_errors(const Operation&) {
  return {{Refusal::dtype, {{{3}}, {{2}}}, {}, "float32"},
          {Refusal::dtype, {{{3}}, {.shape = {3}, .dtype = DType::boolean}}, {}, "bool"},
          {Refusal::shape, {{{3}}, indices({1}, {0}), indices({1}, {0})}, {}, "(3,)"},
          {Refusal::shape, {{{3, 3}}, indices({2}, {0, 1}), indices({3}, {0, 1, 2})}, {}, "(2,)"}};
}
std::vector<ErrorSample> index_put_errors(const Operation& operation) {
  std::vector<ErrorSample> out = index_errors(operation);
  for (ErrorSample& error : out) error.operands.push_back({{}});
  out.push_back({Refusal::shape, {{{3}}, indices({2}, {0, 1}), {{3}}}, {}, "(3,)"});
  return out;
}

}  // namespace

std::span<const Operation> at_operations() {
  static const Operation kTable[] = {
      {.name = "at",
       .family = "at",
       .signature = "at(x, {{start, stop, step}, ...}).get() / set, add, multiply, minimum, maximum(values)",
       .summary = "The elements that slices select, or a tensor in which they are replaced, added to, "
                  "multiplied, or limited. The gradient of what is replaced is 0.",
       .types = kNumeric,
       .call = call_at,
       .ranges = {Range{}, Range{.offset = 1.0 / 128}},
       .samples = at_samples,
       .errors = at_errors},
      {.name = "index",
       .family = "at",
       .signature = "index(x, {i, j, ...}) or at(x, i, j, ...).get()",
       .summary =
           "x[i, j, ...]: integers that broadcast to one shape, which replaces the first axes. Negative ones "
           "count from the end; outside of an axis is NaN, or 0 in types without one.",
       .types = kAnyType,
       .call = call_index,
       .samples = index_samples,
       .errors = index_errors},
      {.name = "index_put",
       .family = "at",
       .signature = "index_put(x, {i, j, ...}, values, how=set) or at(x, i, j, ...).set, add, minimum, "
                    "maximum(values)",
       .summary = "x with values where index reads. Values with one index combine as `how` says: set leaves "
                  "the last, which has the gradient; add, maximum, minimum take all, with what is "
                  "there.",
       .types = kAnyType,
       .call = call_index_put,
       .ranges = {Range{.distinct = true}, Range{.offset = 1.0 / 128, .distinct = true}},
       .samples = index_put_samples,
       .errors = index_put_errors},
  };
  return kTable;
}

}  // namespace caldera::catalogue
