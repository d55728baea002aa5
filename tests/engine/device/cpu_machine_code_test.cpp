// Checks machine code of the CPU device beside the interpreter, bit for bit, over random kernels, with each
// instruction set that it is made for; and beside the reference.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "engine/check/reference/kernel_builder.h"
#include "engine/check/reference/row_kernels.h"
#include "engine/check/reference/scalar_limits.h"
#include "engine/device/cpu/host/cpu_info.h"
#include "engine/device/cpu/machine_code/machine_code.h"
#include "engine/device/cpu_threads.h"
#include "tests/support/devices.h"
#include "tests/support/machine_code.h"
#include "tests/support/plans/plan_case.h"

namespace caldera::testing {
namespace {

using cpu::MachineCodeUse;
using Use = UseMachineCode;

/// The bytes with every NaN as the same one: which of two a sum keeps is up to the compiler.
std::vector<std::byte> with_one_nan(std::vector<std::byte> bytes, DType type) {
  const std::size_t size = size_of(type);
  for (std::size_t at = 0; is_floating(type) && at + size <= bytes.size(); at += size) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &bytes[at], size);
    const std::uint32_t magnitude = bits & (size == 4 ? 0x7fffffffU : 0x7fffU);
    const std::uint32_t infinity = size == 4 ? 0x7f800000U : type == DType::f16 ? 0x7c00U : 0x7f80U;
    if (magnitude > infinity) std::memset(&bytes[at], 0x7f, size);
  }
  return bytes;
}

/// Runs the plan by the interpreter and by machine code. `types`: of the outputs.
void expect_same_bits(const PlanCase& c, const std::vector<DType>& types) {
  std::vector<std::vector<std::byte>> interpreted, compiled;
  {
    const Use use(MachineCodeUse::never);
    interpreted = c.run_on_device();
  }
  {
    const Use use(MachineCodeUse::always);
    compiled = c.run_on_device();
  }
  ASSERT_EQ(interpreted.size(), compiled.size());
  for (std::size_t o = 0; o < compiled.size(); ++o) {
    const auto want = with_one_nan(interpreted[o], types[o]);
    const auto got = with_one_nan(compiled[o], types[o]);
    const auto differs = std::mismatch(want.begin(), want.end(), got.begin()).first;
    if (differs == want.end()) continue;
    const std::size_t size = size_of(types[o]);
    const std::size_t element = static_cast<std::size_t>(differs - want.begin()) / size;
    const auto text = [&](const std::vector<std::byte>& bytes) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, &bytes[element * size], size);
      return fmt::format("{} ({:#x})",
                         to_text(types[o], read_number(bytes, types[o], static_cast<std::int64_t>(element))),
                         bits);
    };
    FAIL() << "output " << o << ", element " << element << ": interpreted " << text(want) << ", compiled "
           << text(got);
  }
}

constexpr ScalarOp kUnary[] = {
    ScalarOp::neg,   ScalarOp::abs,   ScalarOp::sign,       ScalarOp::floor,     ScalarOp::ceil,
    ScalarOp::round, ScalarOp::trunc, ScalarOp::exp,        ScalarOp::expm1,     ScalarOp::log,
    ScalarOp::log1p, ScalarOp::sqrt,  ScalarOp::rsqrt,      ScalarOp::asin,      ScalarOp::acos,
    ScalarOp::atan,  ScalarOp::tanh,  ScalarOp::sigmoid,    ScalarOp::erf,       ScalarOp::exp2,
    ScalarOp::log2,  ScalarOp::log10, ScalarOp::reciprocal, ScalarOp::round_f16, ScalarOp::round_bf16,
};
constexpr ScalarOp kBinary[] = {
    ScalarOp::add,     ScalarOp::sub,   ScalarOp::mul,      ScalarOp::div, ScalarOp::maximum,
    ScalarOp::minimum, ScalarOp::atan2, ScalarOp::copysign, ScalarOp::add, ScalarOp::mul,
};
/// Operations in which a small difference of an operand is a small one of the result.
constexpr ScalarOp kSmoothUnary[] = {
    ScalarOp::neg, ScalarOp::abs,     ScalarOp::tanh, ScalarOp::sigmoid,
    ScalarOp::erf, ScalarOp::sigmoid, ScalarOp::atan, ScalarOp::tanh,
};
constexpr ScalarOp kSmoothBinary[] = {
    ScalarOp::add, ScalarOp::sub, ScalarOp::mul, ScalarOp::maximum, ScalarOp::minimum, ScalarOp::add,
};
constexpr ScalarOp kComparisons[] = {
    ScalarOp::equal,      ScalarOp::not_equal, ScalarOp::less,
    ScalarOp::less_equal, ScalarOp::greater,   ScalarOp::greater_equal,
};

/// Kernels that a test tries: CALDERA_TEST_KERNELS, or so many.
std::uint32_t kernels_to_try(std::uint32_t few) {
  const char* const asked = std::getenv("CALDERA_TEST_KERNELS");
  return asked == nullptr ? few : static_cast<std::uint32_t>(std::stoul(asked));
}

/// Says what random kernels are made of: of anything, or so that rounding changes their results little.
enum class Made : std::uint8_t { of_anything, smoothly };

/// A random kernel of one of the forms, its operands, and where they are in memory.
class RandomKernel {
 public:
  RandomKernel(std::uint32_t seed, bool has_rows, std::int64_t rows, std::int64_t length,
               Made made = Made::of_anything)
      : case_(Device::cpu(), seed),
        builder_("random " + std::to_string(seed)),
        made_(made),
        rows_(rows),
        length_(length) {
    const int inputs = 1 + pick(4);
    for (int i = 0; i < inputs; ++i) add_input(i == 0);
    if (pick(2) == 0) {
      numbers_.push_back(builder_.scalar(DType::f32));
      case_.scalar(DType::f32, floating(0.75));
    }
    const int lines = 1 + pick(12);
    for (int i = 0; i < lines; ++i) add_line(has_rows);
    if (has_rows) numbers_.push_back(builder_.op(ScalarOp::add, numbers_[0], reduced()));
    const int outputs = 1 + pick(2);
    for (int o = 0; o < outputs; ++o)
      store(o == 0 ? numbers_.back() : builder_.op(ScalarOp::sub, numbers_[0], number()));
    if (made_ == Made::of_anything && pick(2) == 0) {
      builder_.store(builder_.op(ScalarOp::less, numbers_[0], number()));
      add_output(DType::boolean);
    }
    case_.region(builder_.finish(), {rows, length}, operands(), has_rows ? 1 : 0);
  }

  void check() {
    SCOPED_TRACE(case_.plan().steps[0].as<RegionStep>().kernel->to_string());
    expect_same_bits(case_, types_);
  }

  /// A few elements may differ: where most of a sum cancels.
  void check_beside_reference() {
    SCOPED_TRACE(case_.plan().steps[0].as<RegionStep>().kernel->to_string());
    const Use use(MachineCodeUse::always);
    const auto found = case_.compare(case_.run_on(shared_backend(Device::cpu())), {2e-3, 2e-3});
    const auto elements = rows_ * length_ * static_cast<std::int64_t>(types_.size());
    if (found.differing > 1 + elements / 50)
      FAIL() << found.differing << " of " << elements << " differ: " << found.complaints.front();
  }

 private:
  int pick(int count) { return static_cast<int>(case_.random()() % static_cast<unsigned>(count)); }
  template <std::size_t n>
  ScalarOp pick(const ScalarOp (&ops)[n]) {
    return ops[pick(static_cast<int>(n))];
  }
  std::uint16_t number() {
    const auto recent = std::min<std::size_t>(numbers_.size(), 6);
    return numbers_[numbers_.size() - 1 - static_cast<std::size_t>(pick(static_cast<int>(recent)))];
  }

  void add_input(bool whole) {
    constexpr DType kTypes[] = {DType::f32, DType::f32, DType::f32, DType::f16, DType::bf16, DType::i32};
    const DType type = kTypes[pick(6)];
    std::uint16_t value = builder_.load(type);
    if (type == DType::i32) value = builder_.cast(value, DType::f32);
    const int kind = whole ? 0 : pick(4);
    const std::int64_t row = kind < 2 ? length_ : kind == 2 ? 1 : 0;  // of each point, or one a row
    const std::int64_t point = kind == 2 ? 0 : 1;                     // or the same row again
    const int buffer = case_.input(type, kind == 2 ? rows_ : kind == 3 ? length_ : rows_ * length_, {-3, 3});
    if (made_ == Made::of_anything && type == DType::f32 && pick(3) == 0)
      for (const double special : {0.0, -0.0, 1e30, -1e-40, std::numeric_limits<double>::infinity(),
                                   std::numeric_limits<double>::quiet_NaN()})
        case_.set(buffer, pick(static_cast<int>(kind == 2 ? rows_ : length_)), floating(special));
    inputs_.push_back(view(buffer, {row, point}));
    numbers_.push_back(value);
  }

  std::uint16_t reduced() {
    constexpr ScalarOp kReductions[] = {ScalarOp::row_sum, ScalarOp::row_maximum, ScalarOp::row_minimum,
                                        ScalarOp::row_sum};
    return builder_.op(pick(kReductions), number());
  }

  /// Zero for NaN: the sign of one is nothing that a kernel promises.
  std::uint16_t number_or_zero(std::uint16_t value) {
    const std::uint16_t is_number = builder_.op(ScalarOp::equal, value, value);
    return builder_.op(ScalarOp::select, is_number, value, builder_.cast(is_number, DType::f32));
  }

  void add_line(bool has_rows) {
    const int kind = pick(has_rows ? 12 : 10);
    if (made_ == Made::smoothly && kind < 10) {
      numbers_.push_back(kind < 5 ? builder_.op(pick(kSmoothUnary), number())
                                  : builder_.op(pick(kSmoothBinary), number(), number()));
      return;
    }
    if (kind >= 10) return numbers_.push_back(reduced());
    if (kind < 4) return numbers_.push_back(builder_.op(pick(kUnary), number()));
    if (kind < 8) {
      const ScalarOp op = pick(kBinary);
      const std::uint16_t first = number(), second = number();
      return numbers_.push_back(
          builder_.op(op, first, op == ScalarOp::copysign ? number_or_zero(second) : second));
    }
    if (kind == 8) {
      const std::uint16_t whole = builder_.cast(number(), DType::i32);
      const std::uint16_t other = builder_.cast(number(), DType::i32);
      constexpr ScalarOp kWhole[] = {ScalarOp::add,     ScalarOp::mul,     ScalarOp::sub,
                                     ScalarOp::bit_xor, ScalarOp::maximum, ScalarOp::minimum,
                                     ScalarOp::bit_and};
      return numbers_.push_back(builder_.cast(builder_.op(pick(kWhole), whole, other), DType::f32));
    }
    truths_.push_back(builder_.op(pick(kComparisons), number(), number()));
    if (truths_.size() > 1 && pick(2) == 0)
      truths_.push_back(builder_.op(ScalarOp::logical_or, truths_.back(), truths_.front()));
    numbers_.push_back(pick(3) == 0 ? builder_.cast(truths_.back(), DType::f32)
                                    : builder_.op(ScalarOp::select, truths_.back(), number(), number()));
  }

  void store(std::uint16_t value) {
    constexpr DType kTypes[] = {DType::f32, DType::f32, DType::f16, DType::bf16};
    const DType type = made_ == Made::smoothly ? DType::f32 : kTypes[pick(4)];
    builder_.store(value, type);
    add_output(type);
  }
  void add_output(DType type) {
    types_.push_back(type);
    outputs_.push_back(view(case_.output(type, rows_ * length_), {length_, 1}));
  }
  std::vector<Operand> operands() const {
    std::vector<Operand> all = inputs_;
    all.insert(all.end(), outputs_.begin(), outputs_.end());
    return all;
  }

  PlanCase case_;
  KernelBuilder builder_;
  Made made_;
  std::int64_t rows_, length_;
  std::vector<std::uint16_t> numbers_, truths_;
  std::vector<Operand> inputs_, outputs_;
  std::vector<DType> types_;
};

class CpuMachineCode : public ::testing::Test {
 protected:
  void SetUp() override {
    if (cpu::machine_code_set().empty())
      GTEST_SKIP() << "built without AsmJit, or the processor has no AVX2: no machine code is made here";
  }
};

TEST_F(CpuMachineCode, PointsHaveTheInterpretersBits) {
  with_each_machine([](const char* name) {
    const std::uint64_t before = cpu::machine_code_stats().compiled;
    const std::uint32_t kernels = kernels_to_try(1500);
    for (std::uint32_t seed = 1; seed <= kernels; ++seed) {
      SCOPED_TRACE(std::string(name) + ", kernel " + std::to_string(seed));
      const std::int64_t lengths[] = {1, 7, 16, 33, 64, 100, 257, 300, 1030};
      RandomKernel(seed, false, 1 + seed % 4, lengths[seed % 9]).check();
      if (HasFailure()) return;
    }
    EXPECT_GT(cpu::machine_code_stats().compiled, before + kernels * 4 / 5) << name;
  });
}

TEST_F(CpuMachineCode, RowsHaveTheInterpretersBits) {
  with_each_machine([](const char* name) {
    const std::uint64_t before = cpu::machine_code_stats().compiled;
    const std::uint32_t kernels = kernels_to_try(1000);
    for (std::uint32_t seed = 1; seed <= kernels; ++seed) {
      SCOPED_TRACE(std::string(name) + ", kernel " + std::to_string(seed));
      const std::int64_t lengths[] = {1, 5, 16, 40, 64, 100, 256, 257, 300, 520, 1000, 1024, 1030, 5000};
      RandomKernel(seed, true, 1 + seed % 5, lengths[seed % 14]).check();
      if (HasFailure()) return;
    }
    EXPECT_GT(cpu::machine_code_stats().compiled, before + kernels / 2) << name;
  });
}

TEST_F(CpuMachineCode, SmoothKernelsAgreeWithTheReference) {
  with_each_machine([](const char* name) {
    const std::uint32_t kernels = kernels_to_try(300);
    for (std::uint32_t seed = 1; seed <= kernels; ++seed) {
      SCOPED_TRACE(std::string(name) + ", kernel " + std::to_string(seed));
      const std::int64_t lengths[] = {3, 16, 57, 100, 300};
      RandomKernel(seed, seed % 2 == 0, 1 + seed % 3, lengths[seed % 5], Made::smoothly)
          .check_beside_reference();
      if (HasFailure()) return;
    }
  });
}

TEST_F(CpuMachineCode, ReductionsHaveTheInterpretersBits) {
  with_each_machine([](const char* name) {
    std::uint32_t seed = 0;
    for (const Combine combine : {Combine::sum, Combine::maximum, Combine::minimum, Combine::product})
      for (const std::int64_t length : {1, 33, 1000, 5000, 65536, 65537, 200001})
        for (const std::int64_t rows : {1, 3}) {
          if (length > 5000 && (rows > 1 || combine > Combine::maximum)) continue;
          SCOPED_TRACE(std::string(name) + ", " + std::to_string(rows) + " rows of " +
                       std::to_string(length));
          KernelBuilder b("reduction");
          const auto x = b.load(DType::f32), y = b.load(DType::bf16), w = b.load(DType::f32);
          const auto value = b.op(ScalarOp::add, b.op(ScalarOp::mul, x, y), w);
          PlanCase c(Device::cpu(), ++seed);
          c.region(b.store(value).reduce(combine).finish(), {rows, length},
                   {view(c.input(DType::f32, rows * length), {length, 1}),
                    view(c.input(DType::bf16, rows * length), {length, 1}),
                    view(c.input(DType::f32, rows), {1, 0}), view(c.output(DType::f32, rows), {1, 0})},
                   1);
          expect_same_bits(c, {DType::f32});
        }
  });
}

/// Of all points, where an operand has one row alone: by tiles, each of which goes on from the one before.
TEST_F(CpuMachineCode, ReductionsOfARepeatedRowHaveTheInterpretersBits) {
  with_each_machine([](const char* name) {
    const std::uint64_t before = cpu::machine_code_stats().compiled;
    for (const Combine combine : {Combine::sum, Combine::maximum, Combine::minimum})
      for (const int length : {300, 1000, 1024}) {
        SCOPED_TRACE(fmt::format("{}, combine {}, rows of {}", name, static_cast<int>(combine), length));
        KernelBuilder b("repeated row");
        PlanCase c(Device::cpu(), static_cast<std::uint32_t>(length));
        const auto value = b.op(ScalarOp::mul, b.load(DType::f32), b.load(DType::f32));
        const int x = c.input(DType::f32, 400 * length), y = c.input(DType::f32, length);
        const std::vector<Operand> operands{view(x, {length, 1}), view(y, {0, 1}),
                                            view(c.output(DType::f32, 1), {0, 0})};
        c.region(b.store(value).reduce(combine).finish(), {400, length}, operands, 2);
        expect_same_bits(c, {DType::f32});
        c.set(x, 70'000, floating(std::numeric_limits<double>::quiet_NaN()));
        expect_same_bits(c, {DType::f32});
      }
    EXPECT_GT(cpu::machine_code_stats().compiled, before);
  });
}

/// Rows that near caches do not hold are asked for ahead, by a function of its own.
TEST_F(CpuMachineCode, RowsFarAwayHaveTheInterpretersBits) {
  const std::int64_t length = 500, far = cpu_threads() * cpu::second_level_cache_bytes() / (4 * length);
  const auto rows_of = [&](std::int64_t rows) {
    PlanCase c(Device::cpu());
    c.region(reference::softmax_kernel(DType::f32), {rows, length},
             {view(c.input(DType::f32, rows * length), {length, 1}),
              view(c.output(DType::f32, rows * length), {length, 1})},
             1);
    return c;
  };
  expect_same_bits(rows_of(20), {DType::f32});
  const std::uint64_t before = cpu::machine_code_stats().compiled;
  expect_same_bits(rows_of(far), {DType::f32});
  EXPECT_EQ(cpu::machine_code_stats().compiled - before, 1U) << "beside the function that few rows have";
}

TEST_F(CpuMachineCode, AgreesWithTheReference) {
  const Use use(MachineCodeUse::always);
  with_each_machine([](const char* name) {
    for (int o = static_cast<int>(ScalarOp::neg); o <= static_cast<int>(ScalarOp::select); ++o) {
      const auto op = static_cast<ScalarOp>(o);
      if (op == ScalarOp::cast || !accepts(op, DType::f32)) continue;
      const DType result = value_type(op, DType::f32);
      SCOPED_TRACE(std::string(info(op).name) + ", " + name);
      PlanCase c(Device::cpu(), static_cast<std::uint32_t>(o));
      const auto kernel = one_op_kernel(op, DType::f32, result);
      std::vector<Operand> operands;
      for (DType input : kernel->inputs)
        operands.push_back(view(c.input(input, 1025, reference::checked_range(op)), {1}));
      operands.push_back(view(c.output(result, 1025), {1}));
      c.region(kernel, {1025}, operands);
      c.check(reference::scalar_allowed(op, DType::f32, Device::cpu()).tolerance);
    }
    for (const std::int64_t length : {33, 1000}) {
      PlanCase c(Device::cpu());
      c.region(reference::softmax_kernel(DType::f32), {7, length},
               {view(c.input(DType::f32, 7 * length), {length, 1}),
                view(c.output(DType::f32, 7 * length), {length, 1})},
               1);
      c.check(reference::row_tolerance(Device::cpu(), length));
    }
  });
}

/// x -> x * number + number, over n points.
PlanCase product_and_sum(std::int64_t n, int instructions) {
  KernelBuilder b("product and sum");
  auto x = b.load(DType::f32);
  for (int i = 0; i < instructions; ++i) x = b.op(i % 2 == 0 ? ScalarOp::mul : ScalarOp::add, x, x);
  PlanCase c(Device::cpu());
  c.region(b.store(x).finish(), {n}, {view(c.input(DType::f32, n), {1}), view(c.output(DType::f32, n), {1})});
  return c;
}

TEST_F(CpuMachineCode, IsMadeWhenAKernelIsHot) {
  const auto compiled = [](const PlanCase& c) {
    const std::uint64_t before = cpu::machine_code_stats().compiled;
    c.run_on_device();
    return cpu::machine_code_stats().compiled - before;
  };
  const PlanCase small = product_and_sum(64, 3), large = product_and_sum(4 << 20, 5);
  {
    const Use use(MachineCodeUse::never);
    EXPECT_EQ(compiled(small), 0U);
    EXPECT_EQ(compiled(large), 0U);
  }
  const Use use(MachineCodeUse::when_hot);
  EXPECT_EQ(compiled(small), 0U);
  EXPECT_EQ(compiled(large), 1U);
  EXPECT_EQ(compiled(large), 0U);
  std::uint64_t made = 0;
  for (int i = 0; i < 1000; ++i) made += compiled(small);
  EXPECT_EQ(made, 1U);
}

/// Of more than 48 MiB results go past the caches, by a function of its own: whole lines and what is left.
TEST_F(CpuMachineCode, ResultsPastTheCachesHaveTheInterpretersBits) {
  // Kernels that no other test has, as plans share the functions of one.
  for (const int instructions : {4, 6}) {
    const std::int64_t n = instructions == 4 ? 6'400'000 : 6'400'019;
    SCOPED_TRACE(n);
    const PlanCase small = product_and_sum(1'000, instructions), large = product_and_sum(n, instructions);
    const auto want = [&] {
      const Use use(MachineCodeUse::never);
      return large.run_on_device();
    }();
    const Use use(MachineCodeUse::always);
    small.run_on_device();
    const std::uint64_t before = cpu::machine_code_stats().compiled;
    const auto got = large.run_on_device();
    EXPECT_EQ(cpu::machine_code_stats().compiled - before, 1U) << "beside the function that small ones have";
    EXPECT_TRUE(got == want);
  }
}

TEST_F(CpuMachineCode, CountsWhatTheInterpreterKeeps) {
  const Use use(MachineCodeUse::always);
  PlanCase c(Device::cpu());
  KernelBuilder b("power");
  const auto x = b.load(DType::f32);
  c.region(b.store(b.op(ScalarOp::pow, x, b.op(ScalarOp::neg, x))).finish(), {9},
           {view(c.input(DType::f32, 9), {1}), view(c.output(DType::f32, 9), {1})});
  const std::uint64_t before = cpu::machine_code_stats().refused;
  c.run_on_device();
  c.run_on_device();
  EXPECT_EQ(cpu::machine_code_stats().refused, before + 1);
}

}  // namespace
}  // namespace caldera::testing
