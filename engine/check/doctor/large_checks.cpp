// What only large work shows: arenas above 4 GiB, operands beyond element 2^30, replays of seconds, the
// tuner's trials of a large product. The reference would take hours, so each result has a closed form.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/check/doctor/checks.h"
#include "engine/check/reference/kernel_builder.h"
#include "engine/device/backend.h"

namespace caldera::doctor {
namespace {

using reference::DeviceRun;
using reference::floating;
using reference::integer;
using reference::Number;
using reference::view;

constexpr const char* kWholeNumbers = "small whole numbers: exact";
constexpr std::int64_t kGiB = std::int64_t{1} << 30;
/// No power of two divides it, so that a position that wrapped around shows another number.
constexpr std::int64_t kPeriod = 65521;

std::int64_t elements_of(const std::vector<std::byte>& bytes, DType type) {
  return static_cast<std::int64_t>(bytes.size() / size_of(type));
}

void expect(const DeviceRun& run, std::size_t output, DType type, const std::string& what,
            const std::function<double(std::int64_t)>& value, std::vector<std::string>& wrong) {
  const std::vector<std::byte>& bytes = run.outputs.at(output);
  for (std::int64_t i = 0; i < elements_of(bytes, type); ++i) {
    const Number n = reference::read_number(bytes, type, i);
    const double got = is_floating(type) ? n.f : static_cast<double>(n.i);
    if (got == value(i)) continue;
    wrong.push_back(fmt::format("{}, element {}: got {}, want {}", what, i, got, value(i)));
    return;
  }
}

/// Runs the check where the device has so many bytes; says so where it has not, or gives less than it has.
void with_memory(Examination& x, const std::string& name, std::int64_t bytes,
                 const std::function<std::vector<std::string>()>& body) {
  const auto there = static_cast<std::int64_t>(x.backend().info().memory_bytes);
  if (there < bytes + bytes / 8)
    return x.skip(name, fmt::format("needs {} MiB, the device has {}", bytes >> 20, there >> 20));
  std::string refused;
  std::vector<std::string> wrong;
  try {
    wrong = body();
  } catch (const OutOfMemoryError& error) {
    refused = error.what();
  }
  if (!refused.empty()) return x.skip(name, refused);
  x.check(name, kWholeNumbers, [&] { return wrong; });
}

std::shared_ptr<const Kernel> copy_of(DType type) {
  reference::KernelBuilder b("copy");
  return b.store(b.load(type), type).finish();
}

/// What the element of a buffer is that repeats `pattern` and adds `shift`.
double repeated(std::int64_t element, std::int64_t shift) {
  return static_cast<double>(element % kPeriod % 113 + shift);
}

/// Five intermediates that live at the same time; of each, rows at its beginning, middle and end are read
/// after all of them have been written.
std::vector<std::string> check_arena(Backend& backend, std::int64_t bytes) {
  constexpr int kBuffers = 5;
  const std::int64_t rows = bytes / kBuffers / 4 / kPeriod, size = rows * kPeriod;
  PlanCase plan(backend.info().device);
  std::vector<int> patterns, results, buffers;
  for (int i = 0; i < kBuffers; ++i) {
    patterns.push_back(plan.input(DType::f32, kPeriod));
    for (std::int64_t e = 0; e < kPeriod; ++e) plan.set(patterns.back(), e, floating(repeated(e, 1000 * i)));
  }
  for (int i = 0; i < kBuffers; ++i) results.push_back(plan.output(DType::f32, 3 * kPeriod));
  for (int i = 0; i < kBuffers; ++i) buffers.push_back(plan.arena(DType::f32, size));
  for (std::size_t i = 0; i < kBuffers; ++i)
    plan.region(copy_of(DType::f32), {rows, kPeriod},
                {view(patterns[i], {0, 1}), view(buffers[i], {kPeriod, 1})});
  for (std::size_t i = 0; i < kBuffers; ++i) {
    const std::int64_t starts[] = {0, rows / 2 * kPeriod, (rows - 1) * kPeriod};
    for (std::int64_t r = 0; r < 3; ++r)
      plan.region(copy_of(DType::f32), {kPeriod},
                  {view(buffers[i], {1}, starts[r]), view(results[i], {1}, r * kPeriod)});
  }
  const DeviceRun run = plan.run_on(backend);
  std::vector<std::string> wrong = run.damage;
  for (std::size_t i = 0; i < kBuffers; ++i)
    expect(
        run, i, DType::f32, fmt::format("intermediate {}", i),
        [&](std::int64_t e) { return repeated(e, 1000 * static_cast<std::int64_t>(i)); }, wrong);
  return wrong;
}

/// A buffer of more than 2^30 elements, written by one step, and read behind element 2^30 by a region, a
/// gather and, of floating types, a product and attention.
std::vector<std::string> check_far_elements(Backend& backend, DType type) {
  constexpr std::int64_t kBehind = kGiB + 77, kRows = (kBehind + 4 * kPeriod) / kPeriod + 1;
  constexpr std::int64_t kPicked = 3, kWidth = 64, kKeys = 32;
  PlanCase plan(backend.info().device);
  const int pattern = plan.input(type, kPeriod);
  for (std::int64_t e = 0; e < kPeriod; ++e) {
    const double value = repeated(e, 0);
    plan.set(pattern, e, {value, static_cast<std::int64_t>(value)});
  }
  const int index = plan.input(DType::i32, kPicked);
  for (std::int64_t i = 0; i < kPicked; ++i) plan.set(index, i, integer(kRows - 1 - 2 * i));
  const int ones = plan.input(DType::f32, kWidth);
  for (std::int64_t i = 0; i < kWidth; ++i) plan.set(ones, i, floating(1));
  const bool products = is_floating(type);
  const int read = plan.output(type, kPeriod), picked = plan.output(type, kPicked * kPeriod);
  const int sums = products ? plan.output(DType::f32, kKeys) : -1;
  const int mean = type == DType::f32 ? plan.output(DType::f32, kWidth) : -1;
  const int highest = type == DType::f32 ? plan.output(DType::f32, 1) : -1,
            total = type == DType::f32 ? plan.output(DType::f32, 1) : -1;
  const int none = type == DType::f32 ? plan.scalar(DType::f32, floating(0)) : -1;
  const int big = plan.arena(type, kRows * kPeriod);
  plan.region(copy_of(type), {kRows, kPeriod}, {view(pattern, {0, 1}), view(big, {kPeriod, 1})});
  plan.region(copy_of(type), {kPeriod}, {view(big, {1}, kBehind), view(read, {1})});
  plan.indexed(GatherStep{.axis = {kRows, kPeriod}}, type, {1, kPicked, kPeriod},
               {view(big, {0, 0, 1}), view(index, {0, 1, 0}), view(picked, {0, kPeriod, 1})});
  if (products)
    plan.contract(DType::f32, {1, kKeys, kWidth},
                  {view(ones, {0, 0, 1}), view(big, {0, kWidth, 1}, kBehind), view(sums, {0, 1, 0})});
  if (type == DType::f32) {
    // All scores are multiplied by 0, so that the result is the mean of the values: 32 keys, exact.
    reference::KernelBuilder score("score");
    const auto raw = score.load(DType::f32);
    const auto kernel = score.store(score.op(ScalarOp::mul, raw, score.scalar(DType::f32))).finish();
    const Operand keys = view(big, {0, 0, 0, 0, kWidth, 1, 0}, kBehind);
    const Operand values = view(big, {0, 0, 0, 0, kWidth, 0, 1}, kBehind);
    Step& step =
        plan.attention(AttentionPass::forward, {1, 1, 1, 1, kKeys, kWidth, kWidth},
                       {view(ones, {0, 0, 0, 0, 0, 1, 0}), keys, values, view(mean, {0, 0, 0, 0, 0, 0, 1}),
                        view(highest, {0, 0, 0, 0, 0, 0, 0}), view(total, {0, 0, 0, 0, 0, 0, 0})},
                       kernel);
    step.scalars = {none};
  }
  const DeviceRun run = plan.run_on(backend);
  std::vector<std::string> wrong = run.damage;
  expect(
      run, 0, type, "a region", [&](std::int64_t e) { return repeated(kBehind + e, 0); }, wrong);
  expect(
      run, 1, type, "a gather", [&](std::int64_t e) { return repeated(e % kPeriod, 0); }, wrong);
  const auto over_keys = [&](std::int64_t first, std::int64_t step, std::int64_t count) {
    double sum = 0;
    for (std::int64_t i = 0; i < count; ++i) sum += repeated(kBehind + first + i * step, 0);
    return sum;
  };
  if (products)
    expect(
        run, 2, DType::f32, "a product", [&](std::int64_t e) { return over_keys(e * kWidth, 1, kWidth); },
        wrong);
  if (type == DType::f32)
    expect(
        run, 3, DType::f32, "attention", [&](std::int64_t e) { return over_keys(e, kWidth, kKeys) / kKeys; },
        wrong);
  return wrong;
}

using Clock = std::chrono::steady_clock;
double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// C = A B, where A holds small numbers and every column of B has a single 1: `times` products into C's.
class RepeatedProduct {
 public:
  RepeatedProduct(Device device, std::int64_t m, std::int64_t n, std::int64_t k, int times = 1)
      : m_(m), n_(n), k_(k), plan_(device) {
    const int a = plan_.input(DType::f32, m * k), b = plan_.input(DType::f32, k * n);
    for (std::int64_t e = 0; e < m * k; ++e) plan_.set(a, e, floating(value(e / k, e % k)));
    for (std::int64_t e = 0; e < k * n; ++e) plan_.set(b, e, floating(e / n == e % n % k ? 1 : 0));
    const int c = plan_.output(DType::f32, m * n), other = plan_.arena(DType::f32, m * n);
    for (int i = 0; i < times; ++i)
      plan_.contract(DType::f32, {m, n, k},
                     {view(a, {k, 0, 1}), view(b, {0, 1, n}), view(i + 1 < times ? other : c, {n, 1, 0})});
  }
  double flops() const { return 2.0 * static_cast<double>(m_ * n_ * k_); }
  PlanCase& plan() { return plan_; }
  std::vector<std::string> wrong(const DeviceRun& run) const {
    std::vector<std::string> lines = run.damage;
    expect(
        run, 0, DType::f32, "the product", [this](std::int64_t e) { return value(e / n_, e % n_ % k_); },
        lines);
    return lines;
  }

 private:
  static double value(std::int64_t row, std::int64_t l) { return static_cast<double>((row * 31 + l) % 101); }

  std::int64_t m_, n_, k_;
  PlanCase plan_;
};

/// Seconds a run of a plan that is ready.
double measured(Backend& backend, RepeatedProduct& product) {
  const auto executable = backend.prepare(product.plan().shared_plan());
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const auto start = Clock::now();
    product.plan().run_on(backend, *executable);
    best = std::min(best, seconds_since(start));
  }
  return best;
}

/// One replay of more than three seconds, which systems end that lose patience with a submit after two.
void check_long_replay(Examination& x, double rate) {
  constexpr double kSeconds = 3.3;
  constexpr int kMost = 20000;
  std::int64_t side = 512;
  while (side < 4096 && 2.0 * std::pow(side, 3) / rate < 2e-3) side *= 2;
  const double flops = 2.0 * std::pow(side, 3);
  x.check("large: a replay of seconds", kWholeNumbers, [&] {
    std::vector<std::string> wrong;
    // Rates that were measured on less work may be far too low: the number of products is found in steps.
    int times = std::clamp(static_cast<int>(kSeconds * rate / flops), 1, kMost);
    for (int attempt = 0; attempt < 4; ++attempt) {
      RepeatedProduct product(x.device(), side, side, side, times);
      const auto executable = x.backend().prepare(product.plan().shared_plan());
      const auto start = Clock::now();
      const DeviceRun run = product.plan().run_on(x.backend(), *executable);
      const double took = seconds_since(start);
      wrong = product.wrong(run);
      if (!wrong.empty() || took >= 3 || times == kMost) break;
      times = std::clamp(static_cast<int>(times * kSeconds / took) + 1, times + 1, kMost);
    }
    return wrong;
  });
}

/// Every candidate for a product of 137 GFLOP, slow ones among them: none may hold the device for long.
void check_tuner(Examination& x, double rate) {
  constexpr std::int64_t kM = 4096, kN = 8192, kK = 2048;
  constexpr double kPatience = 30;
  const std::string name = "large: the tuner, " + Shape({kM, kN, kK}).to_string();
  const double estimated = 2.0 * kM * kN * kK / rate;
  if (estimated > kPatience)
    return x.skip(name, fmt::format("one such product would take this device {:.0f} s", estimated));
  x.on_other_backend(name, "CALDERA_TUNE", "1", [&](Examination& tuned) {
    tuned.check("the product", kWholeNumbers, [&] {
      RepeatedProduct product(tuned.device(), kM, kN, kK);
      return product.wrong(product.plan().run_on(tuned.backend()));
    });
  });
}

}  // namespace

void check_large(Examination& x) {
  constexpr std::int64_t kArena = 4 * kGiB + kGiB / 2;
  with_memory(x, "large: an arena above 4 GiB", kArena, [&] { return check_arena(x.backend(), kArena); });
  for (const DType type : {DType::u8, DType::bf16, DType::f32})
    with_memory(x, fmt::format("large: elements of {} beyond 2^30", name(type)),
                (kGiB + kGiB / 64) * static_cast<std::int64_t>(size_of(type)),
                [&] { return check_far_elements(x.backend(), type); });
  RepeatedProduct small(x.device(), 512, 512, 512);
  const double rate = small.flops() / measured(x.backend(), small);
  check_long_replay(x, rate);
  check_tuner(x, rate);
}

}  // namespace caldera::doctor
