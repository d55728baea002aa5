// Every variant of the matrix product that the device can run, whatever it would choose itself: the doctor's
// plans, and some that are harder.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/check/doctor/checks.h"
#include "engine/check/doctor/families.h"
#include "engine/device/backend.h"
#include "engine/device/vulkan/open/physical_device.h"
#include "engine/device/vulkan/products/product_variants.h"
#include "engine/device/vulkan/vulkan_backend.h"
#include "tests/support/devices.h"
#include "tests/support/plans/plan_case.h"
#include "tests/support/scoped_variable.h"

namespace caldera::testing {
namespace {

using vulkan::product_variants;
using vulkan::ProductShape;
using vulkan::ProductVariant;

const vulkan::Capabilities& capabilities() { return vulkan::physical_devices().at(0).capabilities; }

class VulkanProducts : public ::testing::TestWithParam<const ProductVariant*> {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
    const std::string reason = why_not(*GetParam(), typical_product(*GetParam()), capabilities());
    if (!reason.empty()) GTEST_SKIP() << GetParam()->name << ": " << reason;
    const ScopedVariable pin("CALDERA_TUNE", GetParam()->name);
    backend_ = make_vulkan_backend(0);
  }

  std::unique_ptr<Backend> backend_;
};

/// Sums of k products of f32 below 4: a rounding of the largest partial sum, whose standard deviation is
/// about 5 sqrt(k), at every term.
Tolerance tolerance_of(std::int64_t k) { return {4 * 6e-8, 16 * 6e-8 * static_cast<double>(k + 1)}; }

/// The doctor's plans: types, transposes, layouts, batches, segments, epilogues, operands of 16 bits. It sees
/// to it that products take it.
TEST_P(VulkanProducts, PassTheDoctor) {
  Backend& usual = shared_backend(Device::vulkan(0));
  doctor::Examination x(usual, [](const char* variable, const char* value) {
    const ScopedVariable pin(variable, value);
    return make_vulkan_backend(0);
  });
  x.on_product_variant(GetParam()->name, GetParam()->name, doctor::check_products);
  for (const doctor::Check& check : x.report().checks)
    EXPECT_TRUE(check.good()) << check.name << ": " << check.complaints[0];
  // Variants for operands of one type have no other checks.
  EXPECT_GT(x.report().checks.size(), typical_product(*GetParam()).a == DType::f32 ? 20U : 5U);
}

/// x W + s (x A) B with a bias and a second output, as LoRA layers make it: two segments, a factor, an
/// epilogue.
TEST_P(VulkanProducts, SegmentsFactorsAndEpilogues) {
  KernelBuilder builder("add_place");
  const auto p = builder.load(DType::f32);
  const auto sum = builder.op(ScalarOp::add, p, builder.load(DType::f32));
  builder.store(builder.op(ScalarOp::add, sum, builder.cast(builder.index(), DType::f32)))
      .store(sum, DType::f32);
  const auto add_place = builder.finish();
  const std::int64_t sizes[][3] = {{1, 129, 65}, {7, 33, 20}, {33, 7, 129}, {65, 130, 33}};
  for (const auto& s : sizes) {
    const std::int64_t m = s[0], n = s[1], k = s[2];
    for (bool transposed : {false, true}) {
      SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k));
      PlanCase c(Device::vulkan(0), 5);
      const int a = c.input(DType::f32, 2 * m * k);
      const int b = c.input(DType::f32, k * n);
      const int low = c.input(DType::f32, 2 * m * 8);
      const int high = c.input(DType::f32, n * 8);
      const int bias = c.input(DType::f32, n);
      const int plain = c.output(DType::f32, 2 * m * n);
      const int z = c.output(DType::f32, 2 * m * n);
      const int second = c.output(DType::f32, 2 * m * n);
      c.scalar(DType::f32, floating(2));
      const Operand left = transposed ? view(a, {m * k, 1, 0, m}) : view(a, {m * k, k, 0, 1});
      const Operand right = transposed ? view(b, {0, 0, k, 1}) : view(b, {0, 0, 1, n});
      const Operand l = view(low, {m * 8, 8, 0, 1});
      const Operand h = transposed ? view(high, {0, 0, 1, n}) : view(high, {0, 0, 8, 1});
      const auto out = [&](int buffer) { return view(buffer, {m * n, n, 1, 0}); };
      const Shape dims{2, m, n, k};
      c.contract(DType::f32, dims, {left, right, l, h, out(plain)}, nullptr, {{.k = 8, .scale = 0}});
      c.contract(DType::f32, dims,
                 {left, right, l, h, view(bias, {0, 0, 1, 0}), view(-1, {0, n, 1, 0}), out(z), out(second)},
                 add_place, {{.k = 8, .scale = 0}});
      c.check_on(*backend_, tolerance_of(2 * k + 16));
    }
  }
}

/// silu(x G) * (x U) as two products of one dispatch: the second's epilogue reads what the first's has stored
/// at the same element, on edges of tiles as well.
TEST_P(VulkanProducts, OneFollowsAnother) {
  const DType type = typical_product(*GetParam()).a;
  KernelBuilder first("silu");
  const auto gate = first.load(DType::f32);
  first.store(first.op(ScalarOp::mul, gate, first.op(ScalarOp::sigmoid, gate)));
  KernelBuilder second("multiply");
  const auto up = second.load(DType::f32);
  second.store(second.op(ScalarOp::mul, up, second.load(DType::f32)));
  const auto silu = first.finish(), multiply = second.finish();
  const std::int64_t sizes[][3] = {{1, 70, 64}, {6, 33, 24}, {37, 131, 40}, {300, 150, 32}};
  for (const auto& s : sizes) {
    const std::int64_t m = s[0], n = s[1], k = s[2];
    SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k));
    PlanCase c(Device::vulkan(0), 9);
    const int x = c.input(type, m * k, {-3, 3, true});
    const int g = c.input(type, n * k, {-3, 3, true}), u = c.input(type, n * k, {-3, 3, true});
    const int gated = c.output(DType::f32, m * n), z = c.output(DType::f32, m * n);
    const Operand left = view(x, {k, 0, 1}), between = view(gated, {n, 1, 0});
    c.contract(DType::f32, {m, n, k}, {left, view(g, {0, k, 1}), between}, silu);
    c.contract(DType::f32, {m, n, k}, {left, view(u, {0, k, 1}), between, view(z, {n, 1, 0})}, multiply);
    c.follow();
    const std::uint64_t before = backend_->counters().dispatches;
    c.check_on(*backend_, tolerance_of(2 * k + 16));
    EXPECT_EQ(backend_->counters().dispatches - before, 1U);
  }
}

/// A region at the end of a dispatch finds its counter as it was, replay after replay.
TEST_P(VulkanProducts, RegionsFinishThemAgainAndAgain) {
  const DType type = typical_product(*GetParam()).a;
  KernelBuilder doubled("doubled");
  const auto value = doubled.load(DType::f32);
  const auto kernel = doubled.store(doubled.op(ScalarOp::add, value, value)).finish();
  const std::int64_t m = 40, n = 96, k = 64;
  PlanCase c(Device::vulkan(0), 3);
  const int a = c.input(type, m * k, {-3, 3, true}), b = c.input(type, n * k, {-3, 3, true});
  const int h = c.output(DType::f32, m * n), z = c.output(DType::f32, m * n);
  c.contract(DType::f32, {m, n, k}, {view(a, {k, 0, 1}), view(b, {0, k, 1}), view(h, {n, 1, 0})});
  c.region(kernel, {m, n}, {view(h, {n, 1}), view(z, {n, 1})});
  c.finish();
  const auto executable = backend_->prepare(c.shared_plan());
  for (int run = 0; run < 5; ++run) {
    const Comparison comparison = c.compare(c.run_on(*backend_, *executable), tolerance_of(2 * k));
    EXPECT_TRUE(comparison.good()) << run << ": " << comparison.complaints.at(0);
  }
}

/// Tiles are taken in bands of eight rows of them: more than one band, the last one not full.
TEST_P(VulkanProducts, MoreRowsThanABandOfTiles) {
  const DType type = typical_product(*GetParam()).a;
  const std::int64_t m = 8 * 128 + 40, n = 136, k = 16;
  PlanCase c(Device::vulkan(0), 7);
  const int a = c.input(type, m * k, {-3, 3, true}), b = c.input(type, n * k, {-3, 3, true});
  const int z = c.output(DType::f32, m * n);
  c.contract(DType::f32, {m, n, k}, {view(a, {k, 0, 1}), view(b, {0, k, 1}), view(z, {n, 1, 0})});
  c.check_on(*backend_);
}

// ---- Operands of 16 bits
// ------------------------------------------------------------------------------------

/// The bits of a number that all three types hold exactly: a small multiple of 1/8.
std::uint16_t bits_of(DType type, float value) {
  if (type == DType::bf16) return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16);
  int exponent = 0;
  const float fraction = std::frexp(std::fabs(value), &exponent);  // in [1/2, 1)
  const auto mantissa = static_cast<std::uint16_t>(fraction * 2048) & 0x3ffU;
  return static_cast<std::uint16_t>((value < 0 ? 0x8000U : 0U) | static_cast<unsigned>(exponent + 14) << 10 |
                                    mantissa);
}

class Sixteen {
 public:
  explicit Sixteen(Backend& backend) : backend_(backend) { plan_->device = Device::vulkan(0); }

  /// An input of numbers that it chooses; they are kept as `values`.
  int input(DType type, std::int64_t elements) {
    std::uniform_int_distribution<int> eighths(1, 31);
    std::vector<float> list;
    std::vector<std::byte> bytes(static_cast<std::size_t>(elements) * size_of(type));
    for (std::size_t i = 0; i < static_cast<std::size_t>(elements); ++i) {
      const float value = static_cast<float>(eighths(random_)) / 8 * ((random_() & 1U) != 0 ? -1.0F : 1.0F);
      list.push_back(value);
      if (size_of(type) == 2) {
        const std::uint16_t bits = bits_of(type, value);
        std::memcpy(bytes.data() + 2 * i, &bits, 2);
      } else {
        std::memcpy(bytes.data() + 4 * i, &value, 4);
      }
    }
    values.push_back(std::move(list));
    add(BufferRole::input, type, bytes.size());
    backend_.upload(*storages_.back(), 0, bytes.data(), bytes.size());
    return plan_->input_count++;
  }

  /// Runs the step, whose output has that many f32.
  std::vector<float> run(Step step, std::int64_t elements) {
    step.operands.back().buffer = plan_->input_count;
    add(BufferRole::output, DType::f32, static_cast<std::size_t>(elements) * 4);
    plan_->output_count = 1;
    plan_->steps = {std::move(step)};
    Bindings bindings;
    for (const StoragePtr& s : storages_) bindings.slots.push_back({s.get(), 0});
    const auto executable = backend_.prepare(plan_);
    backend_.wait(backend_.submit(*executable, bindings));
    std::vector<float> result(static_cast<std::size_t>(elements));
    backend_.download(*storages_.back(), 0, result.data(), 4 * result.size());
    return result;
  }

  std::vector<std::vector<float>> values;

 private:
  void add(BufferRole role, DType type, std::size_t bytes) {
    plan_->buffers.push_back({role, type, static_cast<std::int64_t>(bytes), 0});
    storages_.push_back(backend_.allocate(bytes));
  }

  Backend& backend_;
  std::shared_ptr<Plan> plan_ = std::make_shared<Plan>();
  std::vector<StoragePtr> storages_;
  std::mt19937 random_{11};
};

TEST_P(VulkanProducts, OperandsOfSixteenBits) {
  if (!capabilities().storage_16bit) GTEST_SKIP() << "no 16-bit storage";
  const DType types[][4] = {{DType::f16, DType::f16, DType::f16, DType::f16},
                            {DType::bf16, DType::bf16, DType::bf16, DType::bf16},
                            {DType::f32, DType::bf16, DType::f32, DType::bf16},
                            {DType::f16, DType::f32, DType::bf16, DType::f16}};
  for (const auto& t : types) {
    for (std::size_t segments : {1U, 2U}) {
      for (bool transposed : {false, true}) {
        SCOPED_TRACE(std::string(name(t[0])) + " " + std::string(name(t[1])) + " segments " +
                     std::to_string(segments) + " transposed " +
                     std::to_string(static_cast<int>(transposed)));
        const std::int64_t m = 34, n = 68, ks[2] = {72, 13};
        Sixteen problem(*backend_);
        Step step;
        auto& contract = step.work.emplace<ContractStep>();
        step.dtype = DType::f32;
        step.dims = {m, n, ks[0]};
        for (std::size_t s = 0; s < segments; ++s) {
          const std::int64_t k = ks[s];
          const int a = problem.input(t[2 * s], m * k);
          const int b = problem.input(t[2 * s + 1], k * n);
          step.operands.push_back(transposed ? view(a, {1, 0, m}) : view(a, {k, 0, 1}));
          step.operands.push_back(transposed ? view(b, {0, k, 1}) : view(b, {0, 1, n}));
          contract.segments.push_back({.k = k});
        }
        step.operands.push_back(view(0, {n, 1, 0}));
        const std::vector<Operand> operands = step.operands;
        const std::vector<float> got = problem.run(step, m * n);
        for (std::int64_t i = 0; i < m; ++i) {
          for (std::int64_t j = 0; j < n; ++j) {
            double want = 0;  // multiples of 1/64 below 2^11: every sum is exact, in f32 too
            for (std::size_t s = 0; s < segments; ++s) {
              for (std::int64_t l = 0; l < ks[s]; ++l) {
                const Dims &as = operands[2 * s].strides, &bs = operands[2 * s + 1].strides;
                want += double{problem.values[2 * s][static_cast<std::size_t>(i * as[0] + l * as[2])]} *
                        double{problem.values[2 * s + 1][static_cast<std::size_t>(j * bs[1] + l * bs[2])]};
              }
            }
            ASSERT_EQ(got[static_cast<std::size_t>(i * n + j)], want) << i << ", " << j;
          }
        }
      }
    }
  }
}

std::string variant_name(const ::testing::TestParamInfo<const ProductVariant*>& info) {
  std::string text = info.param->name;
  std::ranges::replace(text, '-', '_');
  return text;
}

std::vector<const ProductVariant*> all_variants() {
  std::vector<const ProductVariant*> list;
  for (const ProductVariant& variant : product_variants()) list.push_back(&variant);
  return list;
}

INSTANTIATE_TEST_SUITE_P(Variants, VulkanProducts, ::testing::ValuesIn(all_variants()), variant_name);

/// What no test here can run has to be named, so that nobody adds a variant that is never run.
TEST(ProductVariants, SoftwareDevicesRunAllButThese) {
  CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
  if (shared_backend(Device::vulkan(0)).info().type != "software")
    GTEST_SKIP() << "which variants a GPU runs is its own affair: caldera doctor lists them with reasons";
  std::vector<std::string> left_out;
  for (const ProductVariantInfo& variant : shared_backend(Device::vulkan(0)).product_variants())
    if (!variant.why_not.empty()) left_out.push_back(variant.name);
  EXPECT_EQ(left_out, (std::vector<std::string>{"cooperative-32x16", "cooperative-16x32", "cooperative-32",
                                                "cooperative-64", "cooperative-128",
                                                "cooperative-256x128"}));  // see vulkan_spirv_test.cpp
}

// ---- The choice -------------------------------------------------------------------------------------------

/// A GPU as most are.
vulkan::Capabilities gpu() {
  vulkan::Capabilities can;
  can.subgroup_arithmetic = true;
  can.subgroup_size = 32;
  can.max_invocations = 1024;
  can.shared_memory = 48 << 10;
  return can;
}

TEST(ProductVariants, TheTableChoosesByShape) {
  using vulkan::ProductLayout;
  const auto choice = [](ProductShape shape, const vulkan::Capabilities& can, bool few_cores = false) {
    return std::string(
        default_product_variant(shape, can, few_cores ? vulkan::kProcessorRates : vulkan::kGpuRates).name);
  };
  vulkan::Capabilities can = gpu();
  const ProductShape large{.m = 4096, .n = 4096, .k = 4096};
  EXPECT_EQ(choice(large, can), "shared-128");
  EXPECT_EQ(choice(large, can, true), "plain");
  vulkan::Capabilities eights = can;
  eights.subgroup_size = 8;
  eights.subgroup_ballot = true;
  // A GPU may split a workgroup of eight, unless it is asked not to.
  EXPECT_EQ(choice(large, eights, true), "plain");
  eights.software = true;
  EXPECT_EQ(choice(large, eights, true), "subgroup");
  EXPECT_EQ(choice({.m = 3, .n = 4096, .k = 4096}, eights, true), "plain");
  EXPECT_EQ(
      choice({.type = DType::f64, .a = DType::f64, .b = DType::f64, .m = 64, .n = 64, .k = 64}, eights, true),
      "plain");
  EXPECT_EQ(choice({.m = 512, .n = 512, .k = 512}, can), "shared-64");
  EXPECT_EQ(choice({.m = 256, .n = 256, .k = 512}, can), "shared-32");
  EXPECT_EQ(choice({.m = 4096, .n = 4096, .k = 8}, can), "plain");
  EXPECT_EQ(choice({.m = 64, .n = 64, .k = 4096}, can), "vector-n");
  const ProductShape row{.m = 1, .n = 4096, .k = 4096, .b_layout = ProductLayout::along_k};
  EXPECT_EQ(choice(row, can), "vector-k");
  EXPECT_EQ(choice({.m = 1, .n = 4096, .k = 4096, .b_layout = ProductLayout::across_k}, can), "vector-n");
  can.subgroup_arithmetic = false;
  EXPECT_EQ(choice(row, can), "vector-k-tree");
  can.shared_memory = 16 << 10;  // shared-128 needs 16.5 KiB
  EXPECT_EQ(choice(large, can), "shared-64");
  can.max_invocations = 64;
  EXPECT_EQ(choice(large, can), "shared-32");
}

TEST(ProductVariants, MatricesAreForOperandsOfTheirType) {
  vulkan::Capabilities can = gpu();
  const auto choice = [&](DType a, DType b, std::int64_t m, std::int64_t n, std::int64_t k) {
    return default_product_variant({.a = a, .b = b, .m = m, .n = n, .k = k}, can, vulkan::kGpuRates).name;
  };
  const auto usual = [&](DType type) { return choice(type, type, 4096, 4096, 4096); };
  // NVIDIA's shape is not square; bf16 comes with an extension of its own.
  can.cooperative_matrix = true;
  can.matrix_f16 = {.m = 16, .n = 8, .k = 16};
  EXPECT_EQ(usual(DType::f16), "cooperative-128");
  EXPECT_EQ(usual(DType::bf16), "shared-128") << "f16 matrices would lose its range";
  can.bfloat16_matrix = true;
  can.matrix_bf16 = {.m = 16, .n = 16, .k = 16};
  EXPECT_EQ(usual(DType::bf16), "cooperative-128");
  EXPECT_EQ(choice(DType::f16, DType::bf16, 4096, 4096, 4096), "shared-128");
  EXPECT_EQ(usual(DType::f32), "shared-128");
  // The narrow sides of LoRA: many small tiles.
  EXPECT_EQ(choice(DType::bf16, DType::bf16, 4096, 16, 2048), "cooperative-32x16");
  EXPECT_EQ(choice(DType::bf16, DType::bf16, 16, 2048, 4096), "cooperative-16x32");
}

TEST(ProductVariants, LongSumsGoWhereTheDriversLoopLimitAllows) {
  vulkan::Capabilities can = gpu();
  can.loop_limit = 65535;
  const ProductShape dot{.m = 1, .n = 1, .k = 1 << 20};
  EXPECT_NE(why_not(*vulkan::find_product_variant("plain"), dot, can), "");
  const ProductVariant& choice = default_product_variant(dot, can, vulkan::kProcessorRates);
  EXPECT_EQ(why_not(choice, dot, can), "");
}

}  // namespace
}  // namespace caldera::testing
