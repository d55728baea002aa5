// What several processes do together, as a program for mpirun: tests/engine/distributed/ranks.sh runs it.
//
//   caldera_ranks collectives|large|large_all|gradients|weights|messages|vulkan|alone
//   caldera_ranks mismatch|stall|behind|frozen
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "engine/caldera.h"
#include "engine/distributed/distributed.h"
#include "engine/plan/plan.h"
#include "engine/runtime/plan_finder.h"
#include "tests/engine/distributed/training_ranks.h"

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

/// Elements 0 to n of what repeats itself after 77 of them: 7 and 11 are the periods of weight() and value().
std::vector<double> tiled(std::int64_t n, const std::function<double(std::int64_t)>& element) {
  constexpr std::int64_t kPeriod = 77;
  std::vector<double> all(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < std::min(n, kPeriod); ++i) all[static_cast<std::size_t>(i)] = element(i);
  for (std::int64_t done = kPeriod; done < n; done *= 2)
    std::copy_n(all.begin(), std::min(done, n - done), all.begin() + static_cast<std::ptrdiff_t>(done));
  return all;
}

LazyTensor tensor(int rank, const Shape& shape, DType type, Device device) {
  const std::vector<double> values =
      tiled(shape.numel(), [&](std::int64_t i) { return value(rank, i, type); });
  return LazyTensor::from_vector(values, shape, Device::cpu()).to(DType::f64).to(type).to(device);
}

std::vector<double> numbers(const LazyTensor& x) {
  return astype(x.to(Device::cpu()), DType::f64).to_vector<double>();
}

/// `error` is what may be off, of the larger of 1 and the number that is right.
void equal_numbers(const LazyTensor& got, const std::vector<double>& want, const std::string& what,
                   double error = 0) {
  const std::vector<double> values = numbers(got);
  require(values.size() == want.size(),
          fmt::format("{}: {} elements, not {}", what, values.size(), want.size()));
  if (want.empty() || std::memcmp(values.data(), want.data(), want.size() * sizeof(double)) == 0) return;
  for (std::size_t i = 0; i < want.size(); ++i)
    require(std::abs(values[i] - want[i]) <= error * std::max(1.0, std::abs(want[i])),
            fmt::format("{}: element {} is {}, not {}", what, i, values[i], want[i]));
}

using Fold = std::function<double(double, double)>;

std::vector<double> folded(std::int64_t elements, int ranks, DType type, const Fold& fold) {
  return tiled(elements, [&](std::int64_t i) {
    double total = value(0, i, type);
    for (int r = 1; r < ranks; ++r) total = fold(total, value(r, i, type));
    return total;
  });
}

/// Those of rank `rank` of size() parts.
std::vector<double> part_of(const std::vector<double>& all, int rank, int size) {
  const auto n = static_cast<std::ptrdiff_t>(all.size()) / size;
  return {all.begin() + n * rank, all.begin() + n * (rank + 1)};
}

void collectives_of(const Group& group, Device device, DType type, std::int64_t n) {
  const int size = group.size(), rank = group.rank();
  const Fold plus = std::plus<double>();
  const Fold larger = [](double a, double b) { return std::max(a, b); };
  const Fold smaller = [](double a, double b) { return std::min(a, b); };
  const std::string of = fmt::format(" of {} {} on {} ranks", n, name(type), size);
  const LazyTensor x = tensor(rank, {n}, type, device);
  const std::vector<double> sums = folded(n, size, type, plus);
  equal_numbers(all_sum(x, group), sums, "all_sum" + of);
  equal_numbers(all_sum(x, group, SumOrder::fast), sums, "fast all_sum" + of);
  equal_numbers(all_max(x, group), folded(n, size, type, larger), "all_max" + of);
  equal_numbers(all_min(x, group), folded(n, size, type, smaller), "all_min" + of);
  std::vector<double> joined;
  for (int r = 0; r < size; ++r) {
    const std::vector<double> part = tiled(n, [&](std::int64_t i) { return value(r, i, type); });
    joined.insert(joined.end(), part.begin(), part.end());
  }
  equal_numbers(all_gather(x, group), joined, "all_gather" + of);
  const std::int64_t divided = (n + size - 1) / size * size;
  equal_numbers(reduce_scatter(tensor(rank, {divided}, type, device), group),
                part_of(folded(divided, size, type, plus), rank, size), "reduce_scatter" + of);
  equal_numbers(broadcast(x, size - 1, group), part_of(joined, size - 1, size), "broadcast" + of);
  if (size == 1) return;
  // Each sends to the next, all at once, and receives from the one before.
  const LazyTensor sent = send(x, (rank + 1) % size, group);
  const int from = (rank + size - 1) % size;
  const LazyTensor got = recv_like(x, from, group);
  eval(std::vector<LazyTensor>{sent, got});
  equal_numbers(got, part_of(joined, from, size), "recv" + of);
  equal_numbers(sent, part_of(joined, rank, size), "send" + of);
}

/// Floats of any kind: the fixed tree, written out, with the same bits on all ranks; and MPI's own order near
/// it.
void check_trees(const Group& group, Device device) {
  const auto real = [](int r, std::int64_t i) {
    return static_cast<float>(std::sin(1.0 + 0.7 * static_cast<double>(i) + 31.0 * r));
  };
  for (const std::int64_t n : {33, 20000}) {
    std::vector<float> own, want;
    for (std::int64_t i = 0; i < n; ++i) own.push_back(real(group.rank(), i));
    for (std::int64_t i = 0; i < n; ++i) {
      const std::function<float(int, int)> tree = [&](int begin, int end) -> float {
        if (end - begin == 1) return real(begin, i);
        const int middle = begin + (end - begin + 1) / 2;
        return tree(begin, middle) + tree(middle, end);
      };
      want.push_back(tree(0, group.size()));
    }
    const LazyTensor x = LazyTensor::from_vector(own, {n}, device);
    require(all_sum(x, group).to_vector<float>() == want, fmt::format("bits of all_sum of {}", n));
    equal_numbers(all_sum(x, group, SumOrder::fast), {want.begin(), want.end()}, "fast all_sum", 1e-6);
  }
}

void collectives(const Group& group, Device device, const std::vector<DType>& types,
                 const std::vector<std::int64_t>& sizes) {
  for (const DType type : types)
    for (const std::int64_t n : sizes) collectives_of(group, device, type, n);
  check_trees(group, device);
}

/// The weight of an output in the loss of a rank.
double weight(int rank, std::int64_t i) { return static_cast<double>((i * 3 + rank * 5) % 7 - 2); }

LazyTensor weights(int rank, const Shape& shape, DType type = DType::f32) {
  const std::vector<double> values = tiled(shape.numel(), [&](std::int64_t i) { return weight(rank, i); });
  return LazyTensor::from_vector(values, shape, Device::cpu()).to(type);
}

/// The gradient of the sum over all ranks of sum(weights * op(x)).
void gradients_of(const Group& group, DType type, std::int64_t n, Device device = Device::cpu()) {
  const int size = group.size(), rank = group.rank();
  const auto check = [&](const std::string& op_name, std::int64_t elements, const UnaryFunction& op,
                         const std::vector<double>& want, double error = 0) {
    const LazyTensor x = tensor(rank, {elements}, type, device);
    const LazyTensor y = op(x);
    const LazyTensor g = grad(sum(y * weights(rank, y.shape(), type).to(device)), x);
    equal_numbers(g, want, fmt::format("gradient of {} of {} {} on {} ranks", op_name, n, name(type), size),
                  error);
  };
  const auto total = [&](std::int64_t i) {
    double sum = 0;
    for (int r = 0; r < size; ++r) sum += weight(r, i);
    return sum;
  };
  check(
      "all_sum", n, [&](const LazyTensor& x) { return all_sum(x, group); }, tiled(n, total));
  check(
      "all_gather", n, [&](const LazyTensor& x) { return all_gather(x, group); },
      tiled(n, [&](std::int64_t i) { return total(rank * n + i); }));
  std::vector<double> of_parts;
  const std::int64_t part = (n + size - 1) / size;
  for (int r = 0; r < size; ++r) {
    const std::vector<double> one = tiled(part, [&](std::int64_t i) { return weight(r, i); });
    of_parts.insert(of_parts.end(), one.begin(), one.end());
  }
  check(
      "reduce_scatter", part * size, [&](const LazyTensor& x) { return reduce_scatter(x, group); }, of_parts);
  check(
      "broadcast", n, [&](const LazyTensor& x) { return broadcast(x, size - 1, group); },
      tiled(n, [&](std::int64_t i) { return rank == size - 1 ? total(i) : 0.0; }));
  // Equal ones share it: 1 over their number is rounded, and the product.
  const double rounding = type == DType::f64   ? 1e-15
                          : type == DType::f32 ? 2e-7
                          : type == DType::f16 ? 2e-3
                                               : 2e-2;
  const auto extreme = [&](std::int64_t i, double sign) {
    double best = value(0, i, type);
    for (int r = 1; r < size; ++r) best = std::max(sign * best, sign * value(r, i, type)) * sign;
    int ties = 0;
    for (int r = 0; r < size; ++r) ties += value(r, i, type) == best ? 1 : 0;
    return value(rank, i, type) == best ? total(i) / ties : 0.0;
  };
  check(
      "all_max", n, [&](const LazyTensor& x) { return all_max(x, group); },
      tiled(n, [&](std::int64_t i) { return extreme(i, 1); }), rounding);
  check(
      "all_min", n, [&](const LazyTensor& x) { return all_min(x, group); },
      tiled(n, [&](std::int64_t i) { return extreme(i, -1); }), rounding);
  if (size > 1) {
    const int to = (rank + 1) % size, from = (rank + size - 1) % size;
    // Of x goes the gradient of its own part of the loss, and what comes back from the rank that received it.
    const LazyTensor x = tensor(rank, {n}, type, device);
    const LazyTensor place = zeros_like(x);
    const LazyTensor sent = send(x, to, group), got = recv_like(place, from, group);
    const LazyTensor loss =
        sum(sent * weights(rank, {n}, type).to(device)) + sum(got * weights(rank, {n}, type).to(device) * 2);
    const std::vector<LazyTensor> both = grad(loss, std::vector<LazyTensor>{x, place});
    eval(both);
    equal_numbers(both[0], tiled(n, [&](std::int64_t i) { return weight(rank, i) + 2 * weight(to, i); }),
                  "gradient of send");
    equal_numbers(both[1], std::vector<double>(static_cast<std::size_t>(n), 0),
                  "gradient of the place of recv");
  }
  if (n > 1000) return;  // beyond what f16 holds
  // Twice: of a sum of squares of sums.
  const LazyTensor x = tensor(rank, {n}, type, device);
  const LazyTensor y = all_sum(x, group);
  const LazyTensor g = grad(sum(y * y), x);
  equal_numbers(g,
                tiled(n,
                      [&](std::int64_t i) {
                        double sum_of_all = 0;
                        for (int r = 0; r < size; ++r) sum_of_all += value(r, i, type);
                        return 2.0 * size * sum_of_all;
                      }),
                "gradient of a square of all_sum", type == DType::bf16 ? 1e-2 : 0);
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
  const Group group = init({.timeout = what == "stall" || what == "behind" || what == "frozen" ? 1.0 : 60.0});
  const std::vector<DType> all(kAllDTypes.begin(), kAllDTypes.end());
  const std::vector<DType> floats{DType::f16, DType::bf16, DType::f32, DType::f64};
  if (what == "collectives") {
    collectives(group, Device::cpu(), all, {0, 1, 33});
  } else if (what == "large" || what == "large_all") {
    // All types for any number of ranks takes a minute; a part for each is all of them for all.
    const auto is_due = [&](std::size_t k) {
      return what == "large_all" || k % 5 == static_cast<std::size_t>(group.size()) % 5;
    };
    for (std::size_t k = 0; k < all.size(); ++k)
      if (is_due(k)) collectives_of(group, Device::cpu(), all[k], 1'000'000);
    for (std::size_t k = 0; k < floats.size(); ++k)
      if (is_due(k)) gradients_of(group, floats[k], 1'000'000);
  } else if (what == "vulkan") {
    if (std::ranges::none_of(list_devices(),
                             [](const DeviceInfo& info) { return info.device.kind == DeviceKind::vulkan; }))
      throw Error("no device vulkan");
    collectives(group, Device::vulkan(), all, {0, 1, 33});
    collectives(group, Device::vulkan(), {DType::f32, DType::bf16}, {5000});
    for (const DType type : {DType::f32, DType::bf16}) gradients_of(group, type, 33, Device::vulkan());
  } else if (what == "gradients") {
    for (const DType type : floats)
      for (const std::int64_t n : {0, 1, 33}) gradients_of(group, type, n);
  } else if (what == "weights") {
    caldera::testing::check_token_weights(group);
  } else if (what == "messages") {
    messages(group);
  } else if (what == "mismatch") {
    const LazyTensor x = LazyTensor::full({group.rank() == 0 ? 4 : 5}, 1.0F);
    (group.rank() == 2 ? all_gather(x, group) : all_sum(x, group)).to_vector<float>();
  } else if (what == "stall") {
    if (group.rank() == 1) sleep(30);
    all_sum(LazyTensor::full({4}, 1.0F), group).to_vector<float>();
  } else if (what == "behind") {
    // Rank 0 is done with what rank 1 does not come to, and then waits for rank 2, which is there: rank 2 is
    // still within the first, and has more patience.
    if (group.rank() == 1) sleep(30);
    if (group.rank() == 2) init({.timeout = 2.5});
    broadcast(LazyTensor::full({4}, 1.0F), 0, group).to_vector<float>();
    all_sum(LazyTensor::full({4}, 1.0F), group).to_vector<float>();
  } else if (what == "frozen") {
    // Rank 1 stops as a whole, within the messages: those behind it have heard that it came.
    if (group.rank() == 1) {
      std::thread([] {
        sleep(1);
        raise(SIGSTOP);
      }).detach();
    }
    for (;;) all_sum(LazyTensor::full({100'000}, 1.0F), group).to_vector<float>();
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
