// What several processes do together, as a program for mpirun: tests/engine/distributed/ranks.sh runs it.
//
//   caldera_ranks collectives|gradients|messages|vulkan|mismatch|stall|alone
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "engine/distributed/distributed.h"
#include "engine/plan/plan.h"
#include "engine/runtime/plan_finder.h"

namespace {

using namespace caldera;
using namespace caldera::distributed;

void require(bool holds, const std::string& what) {
  if (!holds) throw Error("wrong: " + what);
}

/// Small whole numbers, which every type holds, and sums of five of them too; never all alike.
double value(int rank, std::int64_t i, DType type) {
  const std::int64_t n = (i * 7 + rank * 13 + i * rank) % 11;
  if (type == DType::boolean) return static_cast<double>(n % 2);
  return static_cast<double>(facts(type).kind == ElementKind::unsigned_integer ? n : n - 5);
}

LazyTensor tensor(int rank, const Shape& shape, DType type, Device device) {
  std::vector<double> values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(rank, static_cast<std::int64_t>(i), type);
  return LazyTensor::from_vector(values, shape, Device::cpu()).to(DType::f64).to(type).to(device);
}

std::vector<double> numbers(const LazyTensor& x) {
  return astype(x.to(Device::cpu()), DType::f64).to_vector<double>();
}

void equal_numbers(const LazyTensor& got, const std::vector<double>& want, const std::string& what) {
  const std::vector<double> values = numbers(got);
  require(values.size() == want.size(),
          fmt::format("{}: {} elements, not {}", what, values.size(), want.size()));
  for (std::size_t i = 0; i < want.size(); ++i)
    require(values[i] == want[i], fmt::format("{}: element {} is {}, not {}", what, i, values[i], want[i]));
}

using Fold = std::function<double(double, double)>;

std::vector<double> folded(std::int64_t elements, int ranks, DType type, const Fold& fold) {
  std::vector<double> all;
  for (std::int64_t i = 0; i < elements; ++i) {
    double total = value(0, i, type);
    for (int r = 1; r < ranks; ++r) total = fold(total, value(r, i, type));
    all.push_back(total);
  }
  return all;
}

void collectives(const Group& group, Device device, const std::vector<DType>& types,
                 const std::vector<std::int64_t>& sizes) {
  const int size = group.size(), rank = group.rank();
  const Fold plus = std::plus<double>();
  const Fold larger = [](double a, double b) { return std::max(a, b); };
  const Fold smaller = [](double a, double b) { return std::min(a, b); };
  for (const DType type : types) {
    for (const std::int64_t n : sizes) {
      const std::string of = fmt::format(" of {} {} on {} ranks", n, name(type), size);
      const LazyTensor x = tensor(rank, {n}, type, device);
      equal_numbers(all_sum(x, group), folded(n, size, type, plus), "all_sum" + of);
      equal_numbers(all_sum(x, group, SumOrder::fast), folded(n, size, type, plus), "fast all_sum" + of);
      equal_numbers(all_max(x, group), folded(n, size, type, larger), "all_max" + of);
      equal_numbers(all_min(x, group), folded(n, size, type, smaller), "all_min" + of);
      std::vector<double> joined;
      for (int r = 0; r < size; ++r)
        for (std::int64_t i = 0; i < n; ++i) joined.push_back(value(r, i, type));
      equal_numbers(all_gather(x, group), joined, "all_gather" + of);
      const std::vector<double> sums = folded(n * size, size, type, plus);
      equal_numbers(reduce_scatter(tensor(rank, {n * size}, type, device), group),
                    {sums.begin() + n * rank, sums.begin() + n * (rank + 1)}, "reduce_scatter" + of);
      equal_numbers(broadcast(x, size - 1, group),
                    folded(n, 1, type, plus).empty() && n > 0
                        ? joined
                        : std::vector<double>(joined.end() - n, joined.end()),
                    "broadcast" + of);
      if (size > 1) {
        // Each sends to the next, all at once, and receives from the one before.
        const LazyTensor sent = send(x, (rank + 1) % size, group);
        const int from = (rank + size - 1) % size;
        const LazyTensor got = recv_like(x, from, group);
        eval(std::vector<LazyTensor>{sent, got});
        equal_numbers(got, {joined.begin() + n * from, joined.begin() + n * (from + 1)}, "recv" + of);
        equal_numbers(sent, {joined.begin() + n * rank, joined.begin() + n * (rank + 1)}, "send" + of);
      }
    }
  }
  // Floats of any kind: the fixed tree, written out; all ranks have the same bits.
  const auto real = [](int r, std::int64_t i) {
    return static_cast<float>(std::sin(1.0 + 0.7 * static_cast<double>(i) + 31.0 * r));
  };
  for (const std::int64_t n : {33, 20000}) {
    std::vector<float> own, want;
    for (std::int64_t i = 0; i < n; ++i) own.push_back(real(rank, i));
    for (std::int64_t i = 0; i < n; ++i) {
      const std::function<float(int, int)> tree = [&](int begin, int end) -> float {
        if (end - begin == 1) return real(begin, i);
        const int middle = begin + (end - begin + 1) / 2;
        return tree(begin, middle) + tree(middle, end);
      };
      want.push_back(tree(0, size));
    }
    const LazyTensor x = LazyTensor::from_vector(own, {n}, device);
    require(all_sum(x, group).to_vector<float>() == want, fmt::format("bits of all_sum of {}", n));
  }
}

/// The weight of an output in the loss of a rank.
double weight(int rank, std::int64_t i) { return static_cast<double>((i * 3 + rank * 5) % 7 - 2); }

LazyTensor weights(int rank, const Shape& shape) {
  std::vector<float> values(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(weight(rank, static_cast<std::int64_t>(i)));
  return LazyTensor::from_vector(values, shape);
}

/// The gradient of the sum over all ranks of sum(weights * op(x)).
void gradients(const Group& group) {
  const int size = group.size(), rank = group.rank();
  const std::int64_t n = 6;
  const auto check = [&](const std::string& name, const Shape& shape, const UnaryFunction& op,
                         const std::function<double(std::int64_t)>& want) {
    const LazyTensor x = tensor(rank, shape, DType::f32, Device::cpu());
    const LazyTensor y = op(x);
    const LazyTensor g = grad(sum(y * weights(rank, y.shape())), x);
    std::vector<double> expected;
    for (std::int64_t i = 0; i < shape.numel(); ++i) expected.push_back(want(i));
    equal_numbers(g, expected, "gradient of " + name);
  };
  const auto total = [&](std::int64_t i) {
    double sum = 0;
    for (int r = 0; r < size; ++r) sum += weight(r, i);
    return sum;
  };
  check(
      "all_sum", {n}, [&](const LazyTensor& x) { return all_sum(x, group); }, total);
  check(
      "all_gather", {n}, [&](const LazyTensor& x) { return all_gather(x, group); },
      [&](std::int64_t i) { return total(rank * n + i); });
  check(
      "reduce_scatter", {n * size}, [&](const LazyTensor& x) { return reduce_scatter(x, group); },
      [&](std::int64_t i) { return weight(static_cast<int>(i / n), i % n); });
  check(
      "broadcast", {n}, [&](const LazyTensor& x) { return broadcast(x, size - 1, group); },
      [&](std::int64_t i) { return rank == size - 1 ? total(i) : 0.0; });
  const auto extreme = [&](std::int64_t i, double sign) {
    double best = value(0, i, DType::f32);
    for (int r = 1; r < size; ++r) best = std::max(sign * best, sign * value(r, i, DType::f32)) * sign;
    int ties = 0;
    for (int r = 0; r < size; ++r) ties += value(r, i, DType::f32) == best ? 1 : 0;
    return value(rank, i, DType::f32) == best
               ? static_cast<double>(static_cast<float>(total(i)) * (1.0F / static_cast<float>(ties)))
               : 0.0;
  };
  check(
      "all_max", {n}, [&](const LazyTensor& x) { return all_max(x, group); },
      [&](std::int64_t i) { return extreme(i, 1); });
  check(
      "all_min", {n}, [&](const LazyTensor& x) { return all_min(x, group); },
      [&](std::int64_t i) { return extreme(i, -1); });
  if (size > 1) {
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    // Of x goes the gradient of its own part of the loss, and what comes back from the rank that received it.
    const LazyTensor x = tensor(rank, {n}, DType::f32, Device::cpu());
    const LazyTensor place = zeros_like(x);
    const LazyTensor sent = send(x, to, group), got = recv_like(place, from, group);
    const LazyTensor loss = sum(sent * weights(rank, {n})) + sum(got * weights(rank, {n}) * 2);
    const std::vector<LazyTensor> both = grad(loss, std::vector<LazyTensor>{x, place});
    eval(both);
    std::vector<double> expected;
    for (std::int64_t i = 0; i < n; ++i) expected.push_back(weight(rank, i) + 2 * weight(to, i));
    equal_numbers(both[0], expected, "gradient of send");
    equal_numbers(both[1], std::vector<double>(n, 0), "gradient of the place of recv");
  }
  // Twice: of a sum of squares of sums.
  const LazyTensor x = tensor(rank, {n}, DType::f32, Device::cpu());
  const LazyTensor y = all_sum(x, group);
  const LazyTensor g = grad(sum(y * y), x);
  std::vector<double> expected;
  for (std::int64_t i = 0; i < n; ++i) {
    double sum_of_all = 0;
    for (int r = 0; r < size; ++r) sum_of_all += value(r, i, DType::f32);
    expected.push_back(2.0 * size * sum_of_all);
  }
  equal_numbers(g, expected, "gradient of a square of all_sum");
}

/// Groups, and many messages between two in one evaluation.
void messages(const Group& group) {
  const Group half = group.split(group.rank() % 2, -group.rank());  // the largest rank first
  std::vector<double> want(1, 0);
  for (int r = group.rank() % 2; r < group.size(); r += 2) want[0] += r;
  equal_numbers(all_sum(LazyTensor::full({1}, group.rank(), DType::i32), half), want, "all_sum of a part");
  require(half.rank() == (half.size() - 1) - group.rank() / 2, "rank in a group ordered by key");
  for (int step = 0; step < 20; ++step) {  // one plan, many runs
    const LazyTensor x = LazyTensor::full({1000}, group.rank() + step, DType::f32);
    const double total = group.size() * (group.size() - 1) / 2.0 + group.size() * static_cast<double>(step);
    equal_numbers(max(all_sum(x, group) * 2, 0), {2 * total}, "all_sum in a loop");
  }
  group.barrier();
}

void alone() {
  const Group group = init();
  require(group.size() == 1 && group.rank() == 0, "a group of one");
  const LazyTensor x = LazyTensor::full({3}, 2.0F);
  require(all_sum(x).node_id() == x.node_id() && all_gather(x).node_id() == x.node_id() &&
              broadcast(x, 0).node_id() == x.node_id() && reduce_scatter(x).node_id() == x.node_id(),
          "in a group of one nothing comes into the graph");
}

int run(const std::string& what) {
  if (what == "alone") {
    alone();
    return 0;
  }
  const Group group = init({.timeout = what == "stall" ? 1.0 : 60.0});
  const std::vector<DType> all(kAllDTypes.begin(), kAllDTypes.end());
  if (what == "collectives") {
    collectives(group, Device::cpu(), all, {0, 1, 33});
    collectives(group, Device::cpu(), {DType::f32}, {1'000'000});
  } else if (what == "vulkan") {
    collectives(group, Device::vulkan(), {DType::f32, DType::i32}, {1, 33, 5000});
  } else if (what == "gradients") {
    gradients(group);
  } else if (what == "messages") {
    messages(group);
  } else if (what == "mismatch") {
    const LazyTensor x = LazyTensor::full({group.rank() == 0 ? 4 : 5}, 1.0F);
    (group.rank() == 2 ? all_gather(x, group) : all_sum(x, group)).to_vector<float>();
  } else if (what == "stall") {
    if (group.rank() == 1) sleep(30);
    all_sum(LazyTensor::full({4}, 1.0F), group).to_vector<float>();
  } else {
    throw Error("no such case: " + what);
  }
  group.barrier();
  if (group.rank() == 0) fmt::print("right: {} on {} ranks of {}\n", what, group.size(), mpi_name());
  finish();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc > 1 ? argv[1] : "");
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank {}: {}\n", init().rank(), error.what());
    std::fflush(stderr);
    if (is_launched()) end_all(1);
    return 1;
  }
}
