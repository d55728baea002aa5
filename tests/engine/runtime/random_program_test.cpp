// Random programs against an eager interpreter of the same operations: tensors are built, read, evaluated,
// differentiated, replaced and dropped, evaluations fail and are tried again, in one to four threads. Values
// must be equal, gradients too (or a GradientError that says that a history has ended), and memory comes
// back.
//
// CALDERA_FUZZ_PROGRAMS: how many (default 16 on the CPU, 4 on Vulkan); CALDERA_FUZZ_SEED: of the first.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "engine/caldera.h"
#include "engine/runtime/runtime.h"
#include "tests/support/engine_setup.h"

namespace caldera::testing {
namespace {

using Numbers = std::array<double, 4>;  // of a matrix of 2 by 2

/// What the interpreter knows of a tensor: its numbers, computed at once, and how.
struct Known {
  enum class Op { leaf, add, multiply, tanh, matmul };
  Op op = Op::leaf;
  Numbers v{};
  std::shared_ptr<const Known> a, b;
  bool is_constant = false;  // gradients do not pass
};
using KnownPtr = std::shared_ptr<const Known>;

Numbers product(const Numbers& a, const Numbers& b) {
  return {a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
          a[2] * b[1] + a[3] * b[3]};
}

KnownPtr compute(Known::Op op, const KnownPtr& a, const KnownPtr& b) {
  auto known = std::make_shared<Known>(Known{.op = op, .a = a, .b = b});
  for (std::size_t i = 0; i < 4; ++i) {
    if (op == Known::Op::add) known->v[i] = a->v[i] + b->v[i];
    if (op == Known::Op::multiply) known->v[i] = a->v[i] * b->v[i];
    if (op == Known::Op::tanh) known->v[i] = std::tanh(a->v[i]);
  }
  if (op == Known::Op::matmul) known->v = product(a->v, b->v);
  return known;
}

/// The derivative of a tensor's numbers along one number of `x`: forward, a node once.
class Tangents {
 public:
  Tangents(const Known* x, std::size_t element) : x_(x), element_(element) {}

  const Numbers& of(const Known& y) {
    const auto found = known_.find(&y);
    if (found != known_.end()) return found->second;
    Numbers t{};
    if (&y == x_) {
      t[element_] = 1;
    } else if (!y.is_constant && y.op != Known::Op::leaf) {
      const Numbers ta = of(*y.a), tb = y.b ? of(*y.b) : Numbers{};
      if (y.op == Known::Op::matmul) {
        const Numbers left = product(ta, y.b->v), right = product(y.a->v, tb);
        for (std::size_t i = 0; i < 4; ++i) t[i] = left[i] + right[i];
      }
      for (std::size_t i = 0; i < 4; ++i) {
        if (y.op == Known::Op::add) t[i] = ta[i] + tb[i];
        if (y.op == Known::Op::multiply) t[i] = ta[i] * y.b->v[i] + y.a->v[i] * tb[i];
        if (y.op == Known::Op::tanh) t[i] = ta[i] * (1 - y.v[i] * y.v[i]);
      }
    }
    return known_.emplace(&y, t).first->second;
  }

 private:
  const Known* x_;
  std::size_t element_;
  std::unordered_map<const Known*, Numbers> known_;
};

struct Counts {
  std::atomic<int> reads{0}, gradients{0}, ended{0}, failures{0};
};

class RandomProgram {
 public:
  RandomProgram(Device device, std::uint64_t seed, Counts& counts)
      : device_(device), random_(seed), counts_(counts) {}

  void run(int steps) {
    add_leaf();
    for (int i = 0; i < steps && !::testing::Test::HasFailure(); ++i) step();
    for (std::size_t i = 0; i < all_.size(); ++i) read(i);
  }

 private:
  struct Entry {
    LazyTensor x;
    KnownPtr known;
  };

  void step() {
    switch (pick(14)) {
      case 0:
        return add_leaf();
      case 1:
      case 2:
        return read(any());
      case 3:
        return evaluate();
      case 4:
        futures_.push_back(all_[any()].x.eval_async());
        return;
      case 5:
      case 6:
        return differentiate(any(), any());
      case 7:  // replaced, as a parameter is
        all_[any()] = made(Known::Op::tanh, any(), any());
        return evaluate();
      case 8:
        if (all_.size() > 3) all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(any()));
        return;
      case 9:
        return fail();
      case 10:
        if (pick(10) == 0) trim();
        return;
      default:
        all_.push_back(made(static_cast<Known::Op>(1 + pick(4)), any(), any()));
        if (all_.size() > 24) all_.erase(all_.begin());
    }
  }

  std::size_t pick(std::size_t count) { return random_() % count; }
  std::size_t any() { return pick(all_.size()); }
  DType dtype() const { return device_.kind == DeviceKind::cpu ? DType::f64 : DType::f32; }

  void add_leaf() {
    auto known = std::make_shared<Known>();
    for (double& v : known->v) v = std::uniform_real_distribution<double>(-1, 1)(random_);
    const std::vector<double> numbers(known->v.begin(), known->v.end());
    LazyTensor x = astype(LazyTensor::from_vector(numbers, {2, 2}, Device::cpu()), dtype());
    all_.push_back({device_.kind == DeviceKind::cpu ? x : x.to(device_), known});
  }

  Entry made(Known::Op op, std::size_t i, std::size_t j) {
    const Entry &a = all_[i], &b = all_[j];
    switch (op) {
      case Known::Op::add: {  // of halves, so that numbers stay small
        const Entry half{tanh(b.x), compute(Known::Op::tanh, b.known, nullptr)};
        return {a.x + half.x, compute(Known::Op::add, a.known, half.known)};
      }
      case Known::Op::multiply: {
        const Entry small{tanh(b.x), compute(Known::Op::tanh, b.known, nullptr)};
        return {a.x * small.x, compute(op, a.known, small.known)};
      }
      case Known::Op::matmul: {
        const Entry l{tanh(a.x), compute(Known::Op::tanh, a.known, nullptr)};
        const Entry r{tanh(b.x), compute(Known::Op::tanh, b.known, nullptr)};
        return {matmul(l.x, r.x), compute(op, l.known, r.known)};
      }
      default:
        return {tanh(a.x), compute(Known::Op::tanh, a.known, nullptr)};
    }
  }

  void expect_equal(const LazyTensor& x, const Numbers& wanted, const char* what) {
    const std::vector<double> got = astype(x, DType::f64).to(Device::cpu()).to_vector<double>();
    const double tolerance = dtype() == DType::f64 ? 1e-9 : 2e-4;
    for (std::size_t i = 0; i < 4; ++i)
      ASSERT_NEAR(got[i], wanted[i], tolerance * (1 + std::abs(wanted[i]))) << what << ", element " << i;
  }

  void read(std::size_t i) {
    ++counts_.reads;
    expect_equal(all_[i].x, all_[i].known->v, "a value");
  }

  void evaluate() {
    std::vector<LazyTensor> some;
    for (std::size_t n = 1 + pick(4); n > 0; --n) some.push_back(all_[any()].x);
    eval(some);
  }

  void differentiate(std::size_t i, std::size_t j) {
    const Entry &y = all_[i], &x = all_[j];
    Numbers wanted{};
    for (std::size_t e = 0; e < 4; ++e) {
      Tangents along(x.known.get(), e);
      for (const double t : along.of(*y.known)) wanted[e] += t;
    }
    try {
      const LazyTensor seed = ones_like(y.x);
      expect_equal(vjp({&y.x, 1}, {&x.x, 1}, {&seed, 1})[0], wanted, "a gradient");
      ++counts_.gradients;
    } catch (const GradientError& error) {
      EXPECT_NE(std::string(error.what()).find("history has ended"), std::string::npos) << error.what();
      ++counts_.ended;
    }
  }

  /// A factorisation that fails beside others: they have their values, and the tensors are as they were.
  void fail() {
    if (device_.kind != DeviceKind::cpu) return;
    const std::size_t i = any();
    const LazyTensor bad = cholesky(all_[i].x * 0.0 - 1.0);
    const LazyTensor beside = all_[i].x * 2.0;
    EXPECT_THROW(eval({beside, bad}), ValueError);
    EXPECT_TRUE(beside.is_evaluated());
    EXPECT_FALSE(bad.is_evaluated());
    EXPECT_THROW(sum(bad).eval(), ValueError);
    ++counts_.failures;
  }

  Device device_;
  std::mt19937_64 random_;
  Counts& counts_;
  std::vector<Entry> all_;
  std::vector<EvalFuture> futures_;
};

std::uint64_t number_in(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

class RandomPrograms : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(Setups, RandomPrograms, ::testing::ValuesIn(engine_setups()), engine_setup_name);

TEST_P(RandomPrograms, DoWhatTheEagerInterpreterDoes) {
  settings().verify = false;
  const std::uint64_t first = number_in("CALDERA_FUZZ_SEED", 1);
  const std::uint64_t count = number_in("CALDERA_FUZZ_PROGRAMS", device().kind == DeviceKind::cpu ? 16 : 4);
  Counts counts;
  trim();
  const std::uint64_t live = backend(device()).counters().live_bytes;
  for (std::uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    {
      std::vector<std::jthread> threads;
      for (std::uint64_t t = 0; t < 1 + seed % 4; ++t)
        threads.emplace_back([&, t] { RandomProgram(device(), seed * 16 + t, counts).run(60); });
    }
    synchronize();
    trim();
    EXPECT_LE(backend(device()).counters().live_bytes, live) << "what a program held is given back";
  }
  RecordProperty("reads", counts.reads);
  RecordProperty("gradients", counts.gradients);
  RecordProperty("gradients_refused", counts.ended);
  RecordProperty("failures", counts.failures);
  EXPECT_GT(counts.reads, 100);
  EXPECT_GT(counts.gradients, 2 * counts.ended) << "most histories are there";
}

}  // namespace
}  // namespace caldera::testing
