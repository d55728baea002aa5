#include "benches/limits.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <thread>

#include "benches/case.h"
#include "benches/clock.h"
#include "benches/loops.h"
#include "engine/device/backend.h"
#include "engine/device/cpu/cpu_backend.h"
#include "engine/device/cpu_threads.h"
#include "engine/runtime/runtime.h"
#include "ops/linalg/matmul.h"

namespace caldera::bench {
namespace {

/// Memory first touched by the thread that uses it, in large pages where there are some: with small ones
/// reading is half as fast on virtual machines.
class Floats {
 public:
  explicit Floats(std::size_t count) {
    const std::size_t bytes = count * sizeof(float);
    const std::size_t alignment = bytes < kLargePage ? kAlignment : kLargePage;
    data_.reset(
        static_cast<float*>(std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment)));
    if (!data_) throw std::bad_alloc();
    if (alignment == kLargePage) (void)madvise(data_.get(), bytes, MADV_HUGEPAGE);
    std::fill(data_.get(), data_.get() + count, 1.0F);
  }
  float* data() const { return data_.get(); }

 private:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kLargePage = 2 << 20;
  struct Free {
    void operator()(float* memory) const { std::free(memory); }  // NOLINT(cppcoreguidelines-no-malloc)
  };
  std::unique_ptr<float[], Free> data_;
};

/// Runs what `prepare` makes in all threads at once, several times: the shortest time from the first start to
/// the last end of a round. The threads look at the clock themselves: one that only waited for them might
/// wake up late.
double best_seconds(int threads, int rounds, const std::function<std::function<void()>()>& prepare) {
  struct Stretch {
    Clock::time_point begin;
    Clock::time_point end;
  };
  std::vector<std::vector<Stretch>> stretches(static_cast<std::size_t>(threads));
  std::barrier start(threads);
  std::vector<std::thread> team;
  team.reserve(stretches.size());
  for (std::vector<Stretch>& mine : stretches) {
    team.emplace_back([&start, &prepare, &mine, rounds] {
      const std::function<void()> body = prepare();
      for (int round = 0; round < rounds; ++round) {
        start.arrive_and_wait();
        const Clock::time_point begin = Clock::now();
        body();
        mine.push_back({begin, Clock::now()});
      }
    });
  }
  for (std::thread& member : team) member.join();
  double best = HUGE_VAL;
  for (std::size_t round = 0; round < static_cast<std::size_t>(rounds); ++round) {
    Stretch all = stretches[0][round];
    for (const std::vector<Stretch>& mine : stretches) {
      all.begin = std::min(all.begin, mine[round].begin);
      all.end = std::max(all.end, mine[round].end);
    }
    best = std::min(best, std::chrono::duration<double>(all.end - all.begin).count());
  }
  return best;
}

std::atomic<float> sink = 0;  // keeps the loops' results alive
std::atomic<std::int32_t> integer_sink = 0;

// Short enough for some round to pass undisturbed, long enough for the threads to overlap.
constexpr double kBytesPerRound = 64e6;
constexpr int kRounds = 8;
constexpr int kMemoryRounds = 24;  // others use the memory as well
constexpr double kInMemory = 32e6;
constexpr int kPeakRounds = 40;
constexpr double kLongEnough = 0.5;  // seconds

struct Rates {  // GB/s
  double read = 0;
  double best = 0;
};

Rates measured_bandwidth(const Loops& loops, double working_set, int threads) {
  const auto turns = static_cast<int>(std::clamp(kBytesPerRound / working_set, 1.0, 20'000.0));
  // Multiples of 64 floats, as the loops want them.
  const std::size_t all = static_cast<std::size_t>(working_set / threads / sizeof(float)) / 192 * 192;
  const std::size_t third = all / 3;
  const int rounds = working_set < kInMemory ? kRounds : kMemoryRounds;
  const double read = best_seconds(threads, rounds, [&]() -> std::function<void()> {
    auto a = std::make_shared<Floats>(all);
    return [&loops, a, all, turns] {
      for (int i = 0; i < turns; ++i) sink = loops.read(a->data(), all);
    };
  });
  const double triad = best_seconds(threads, rounds, [&]() -> std::function<void()> {
    auto a = std::make_shared<Floats>(third);
    auto b = std::make_shared<Floats>(third);
    auto c = std::make_shared<Floats>(third);
    return [&loops, a, b, c, third, turns] {
      for (int i = 0; i < turns; ++i) loops.triad(a->data(), b->data(), c->data(), third);
    };
  });
  const double gb = f32_bytes(static_cast<double>(all)) * threads * turns / 1e9;
  return {gb / read, gb / std::min(read, triad)};
}

/// Of a loop of operations in registers, in units of 1e9 a second.
double measured_peak(const std::function<void(std::int64_t)>& run, std::int64_t per_turn, int threads) {
  constexpr std::int64_t kTurns = 500'000;
  const double seconds =
      best_seconds(threads, kPeakRounds, [&]() -> std::function<void()> { return [&run] { run(kTurns); }; });
  return static_cast<double>(kTurns * per_turn) * threads / seconds / 1e9;
}

/// The best of a few runs of a lazy graph, in seconds; of fewer where they take long.
double best_run(const std::function<LazyTensor()>& build, int rounds = kRounds) {
  build().eval();
  double best = HUGE_VAL;
  const Clock::time_point begin = Clock::now();
  for (int i = 0; i < rounds && seconds_since(begin) < kLongEnough; ++i) {
    const Clock::time_point start = Clock::now();
    build().eval();
    best = std::min(best, seconds_since(start));
  }
  return best;
}

/// Of the engine's products of two matrices of the type.
double product_peak(Device device, DType dtype) {
  double peak = 0;
  for (const std::int64_t n : {512, 1024}) {
    const LazyTensor a = random_input({n, n}, 1, device, 1, dtype);
    const double flops = 2 * std::pow(static_cast<double>(n), 3);
    peak = std::max(peak, flops / best_run([&] { return matmul(a, a); }) / 1e9);
  }
  return peak;
}

}  // namespace

Limits Limits::measure_cpu(std::span<const DType> types) {
  const Loops loops = widest_loops();
  const int threads = cpu_threads();
  Limits limits;
  limits.method_ = "the program's own loops: the better of reading and a triad; multiply-adds in registers";
  for (const double kib : {32.0, 128.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0, 32768.0, 131072.0}) {
    const double bytes = kib * 1024 * threads;
    const Rates rates = measured_bandwidth(loops, bytes, threads);
    limits.bandwidth_.push_back({bytes, rates.best});
    limits.read_bandwidth_.push_back({bytes, rates.read});
  }
  limits.gflop_per_s_ = measured_peak([&](std::int64_t turns) { sink = loops.multiply_add(turns); },
                                      loops.flops_per_turn, threads);
  if (const IntegerLoop integers = widest_integer_loop(); integers.multiply_add != nullptr) {
    limits.integer_gop_per_s_ =
        measured_peak([&](std::int64_t turns) { integer_sink = integers.multiply_add(turns); },
                      integers.operations_per_turn, threads);
  }
  // Processors may multiply 16 bits faster than floats, by instructions that the loops do not have.
  for (const DType type : types) {
    if (!is_half(type) || limits.gflop_per_s_of_.contains(type)) continue;
    if (const double own = product_peak(Device::cpu(), type); own > limits.gflop_per_s_)
      limits.gflop_per_s_of_[type] = own;
  }
  return limits;
}

Limits Limits::measure_device(Device device, std::span<const DType> types) {
  Limits limits;
  limits.method_ = "the engine's own copies and products";
  double best = 0;
  for (const std::int64_t mebi : {4, 16}) {
    const LazyTensor x = random_input({mebi << 20}, 1, device);
    const double bytes = 2 * f32_bytes(static_cast<double>(x.numel()));
    best = std::max(best, bytes / best_run([&] { return x + 1.0; }) / 1e9);
  }
  limits.bandwidth_.push_back({f32_bytes(2.0 * (16 << 20)), best});
  limits.read_bandwidth_ = limits.bandwidth_;
  limits.gflop_per_s_ = product_peak(device, DType::f32);
  for (const DType type : types)
    if (is_half(type) && backend(device).supports(type) && !limits.gflop_per_s_of_.contains(type))
      limits.gflop_per_s_of_[type] = product_peak(device, type);
  return limits;
}

Limits Limits::measure(Device device, std::span<const DType> types) {
  Limits limits = device.kind == DeviceKind::cpu ? measure_cpu(types) : measure_device(device, types);
  never_slower(limits.bandwidth_);
  never_slower(limits.read_bandwidth_);
  const LazyTensor one = random_input({1}, 1, device);
  one.eval();
  limits.evaluation_us_ = best_run([&] { return one + 1.0; }, 1000) * 1e6;
  return limits;
}

/// A small set that was disturbed is still no slower than a larger one.
void Limits::never_slower(std::vector<Bandwidth>& measured) {
  for (std::size_t i = measured.size(); i-- > 1;)
    measured[i - 1].gb_per_s = std::max(measured[i - 1].gb_per_s, measured[i].gb_per_s);
}

double Limits::bandwidth_for(const std::vector<Bandwidth>& measured, double bytes) {
  const auto above = std::ranges::find_if(measured, [&](const Bandwidth& b) { return b.bytes > bytes; });
  if (above == measured.begin()) return measured.front().gb_per_s;
  if (above == measured.end()) return measured.back().gb_per_s;
  const Bandwidth& below = *(above - 1);
  const double share = std::log(bytes / below.bytes) / std::log(above->bytes / below.bytes);
  return below.gb_per_s + share * (above->gb_per_s - below.gb_per_s);
}

std::optional<double> Limits::limit_us(double bytes, double flops, DType dtype) const {
  if (bytes <= 0 && flops <= 0) return std::nullopt;
  return std::max(bytes / bandwidth_for(bandwidth_, bytes), flops / gflop_per_s_for(dtype)) / 1e3;
}

double Limits::gflop_per_s_for(DType dtype) const {
  const auto own = gflop_per_s_of_.find(dtype);
  return own != gflop_per_s_of_.end() ? own->second : gflop_per_s_;
}

const char* Limits::bound_by(double bytes, double flops, DType dtype, double total_us,
                             std::optional<double> device_us) const {
  if (bytes <= 0 && flops <= 0) return "";
  const double elsewhere = device_us ? total_us - *device_us : 0;
  if (std::max(elsewhere, evaluation_us_) >= total_us / 2) return "overhead";
  return bytes / bandwidth_for(bandwidth_, bytes) >= flops / gflop_per_s_for(dtype) ? "memory" : "compute";
}

std::optional<double> Limits::share(Yardstick yardstick, double bytes, double flops, double us) const {
  switch (yardstick) {
    case Yardstick::read_bandwidth:
      return bytes / us / 1e3 / bandwidth_for(read_bandwidth_, bytes);
    case Yardstick::float_products:
      return flops / us / 1e3 / gflop_per_s_;
    case Yardstick::integer_products:
      return flops / us / 1e3 / integer_gop_per_s_.value_or(gflop_per_s_);
    case Yardstick::none:
      break;
  }
  return std::nullopt;
}

nlohmann::ordered_json Limits::to_json(const std::vector<Bandwidth>& measured) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Bandwidth& b : measured)
    list.push_back({{"bytes", b.bytes}, {"gb_per_s", std::round(b.gb_per_s * 10) / 10}});
  return list;
}

nlohmann::ordered_json Limits::to_json() const {
  nlohmann::ordered_json own = nlohmann::ordered_json::object();
  for (const auto& [type, rate] : gflop_per_s_of_) own[std::string(name(type))] = std::round(rate * 10) / 10;
  return {{"bandwidth", to_json(bandwidth_)},
          {"read_bandwidth", to_json(read_bandwidth_)},
          {"gflop_per_s", std::round(gflop_per_s_ * 10) / 10},
          {"gflop_per_s_of", own},
          {"integer_gop_per_s", integer_gop_per_s_ ? nlohmann::ordered_json(std::round(*integer_gop_per_s_))
                                                   : nlohmann::ordered_json(nullptr)},
          {"evaluation_us", std::round(evaluation_us_ * 100) / 100},
          {"method", method_}};
}

}  // namespace caldera::bench
