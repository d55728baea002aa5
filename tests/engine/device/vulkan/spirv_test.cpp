// The SPIR-V of every kernel that a broad set of plans makes the Vulkan device generate, and of the shaders
// that are built in, is valid. A fresh cache on disk is where it is found.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <spirv-tools/libspirv.hpp>
#include <string>
#include <utility>
#include <vector>

#include "engine/device/backend.h"
#include "engine/device/vulkan/pipelines/disk_cache.h"
#include "engine/device/vulkan/pipelines/embedded_shaders.h"
#include "engine/device/vulkan/pipelines/shader_compiler.h"
#include "engine/device/vulkan/products/product_text.h"
#include "engine/device/vulkan/products/product_variants.h"
#include "engine/device/vulkan/spirv/finish.h"
#include "engine/device/vulkan/spirv/requirements.h"
#include "engine/device/vulkan/vulkan_backend.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/engine_setup.h"
#include "tests/support/plans/attention_case.h"
#include "tests/support/plans/named_programs.h"
#include "tests/support/plans/plan_case.h"
#include "tests/support/plans/random_graph.h"
#include "tests/support/plans/row_kernels.h"

namespace caldera::testing {
namespace {

namespace fs = std::filesystem;

/// What the validator has against a module; empty if nothing.
std::string module_faults(std::span<const std::uint32_t> words) {
  std::string message;
  spvtools::SpirvTools tools(SPV_ENV_VULKAN_1_2);
  tools.SetMessageConsumer([&](spv_message_level_t, const char*, const spv_position_t&, const char* text) {
    message += std::string(text) + "\n";
  });
  spvtools::ValidatorOptions options;
  options.SetScalarBlockLayout(true);  // the device is opened with the feature
  if (tools.Validate(words.data(), words.size(), options)) return {};
  std::string listing;
  tools.Disassemble(words.data(), words.size(), &listing);
  return message + listing.substr(0, 4000);
}

/// The same of a module as the driver gets it.
std::string faults_of(std::span<const std::uint32_t> module) {
  try {
    return module_faults(vulkan::spirv::finish(module, "tested"));
  } catch (const DeviceError& error) {
    return error.what();
  }
}

/// Instructions of an opcode.
int count_of(std::span<const std::uint32_t> words, std::uint16_t op) {
  int count = 0;
  vulkan::spirv::for_each_instruction(
      words, "tested", [&](const vulkan::spirv::Instruction& i) { count += i.op == op ? 1 : 0; });
  return count;
}

class VulkanSpirv : public ::testing::Test {
 protected:
  void SetUp() override {
    CALDERA_REQUIRE_DEVICE(kDevice);
    directory_ = fs::temp_directory_path() / ("caldera-spirv-test-" + std::to_string(::getpid()));
    fs::remove_all(directory_);
    if (const char* old = std::getenv("CALDERA_CACHE_DIR")) before_ = old;
    ASSERT_EQ(::setenv("CALDERA_CACHE_DIR", directory_.c_str(), 1), 0);
    backend_ = make_vulkan_backend(0);
  }
  void TearDown() override {
    if (!backend_) return;
    backend_.reset();
    if (before_)
      ::setenv("CALDERA_CACHE_DIR", before_->c_str(), 1);
    else
      ::unsetenv("CALDERA_CACHE_DIR");
    fs::remove_all(directory_);
  }

  void prepare(const std::shared_ptr<const Plan>& plan) { backend_->prepare(plan); }

  /// Validates what was generated since the device was opened, at least so many kernels.
  void expect_valid(int at_least) const {
    const vulkan::DiskCache cache(directory_);
    int modules = 0;
    for (const auto& entry : fs::directory_iterator(directory_)) {
      if (entry.path().extension() != ".spv") continue;
      const std::string name = entry.path().stem().string();
      ASSERT_EQ(name.size(), 32U) << entry.path();
      Hash128 key;
      key.hi = std::stoull(name.substr(0, 16), nullptr, 16);
      key.lo = std::stoull(name.substr(16), nullptr, 16);
      const auto words = cache.load(key);
      ASSERT_TRUE(words) << entry.path();
      EXPECT_EQ(faults_of(*words), "");
      ++modules;
    }
    EXPECT_GE(modules, at_least);
  }

  static constexpr Device kDevice = Device::vulkan(0);
  fs::path directory_;
  std::optional<std::string> before_;
  std::unique_ptr<Backend> backend_;
};

TEST_F(VulkanSpirv, TheValidatorRefusesADamagedModule) {
  const std::string text = "#version 460\nlayout(local_size_x = 8) in;\nvoid main() {}\n";
  std::vector<std::uint32_t> words = vulkan::compile_glsl(text, "empty");
  ASSERT_EQ(faults_of(words), "");
  words.pop_back();
  EXPECT_NE(faults_of(words), "");
}

TEST_F(VulkanSpirv, BuiltInShaders) {
  int modules = 0;
  for (const auto& entry : fs::recursive_directory_iterator(fs::path("shaders"))) {
    if (entry.path().extension() != ".comp") continue;
    SCOPED_TRACE(entry.path().string());
    const std::span<const std::uint32_t> words = vulkan::embedded_shader(entry.path().stem().string());
    ASSERT_FALSE(words.empty());
    EXPECT_EQ(faults_of(words), "");
    ++modules;
  }
  EXPECT_GE(modules, 8);
}

/// Texts that this device may not be able to run: cooperative matrices with two segments, a factor, an
/// epilogue. Validators may be older than KHR's matrices, so what is validated is the module ahead of them.
TEST_F(VulkanSpirv, CooperativeMatrices) {
  KernelBuilder add("add");
  const auto product = add.load(DType::f32);
  add.store(add.op(ScalarOp::add, product, add.load(DType::f32)));
  const auto kernel = add.finish();
  const GlslEpilogue::Shape shape{.rank = 3, .access = {Access::strided, Access::strided}};
  const std::vector<GlslEpilogue> epilogues{{*kernel, shape, vulkan::kEpilogueNames[0]},
                                            {*kernel, shape, vulkan::kEpilogueNames[1]}};
  for (const bool scaled : {false, true}) {
    for (const std::size_t ends : {0U, 1U, 2U}) {
      vulkan::ProductForm form;
      const vulkan::ProductVariant& variant = *vulkan::find_product_variant("cooperative-64");
      vulkan::Capabilities can;
      can.matrix_f16 = {.m = 16, .n = 16, .k = 16};
      can.subgroup_size = 32;
      const vulkan::ProductShape square{.a = DType::f16, .b = DType::f16, .m = 64, .n = 64, .k = 64};
      form.variant = &variant;
      form.kernel = variant.family->kernel(variant, square, can, vulkan::kGpuRates);
      form.memory[0] = form.memory[1] = {DType::f16, DType::f16};
      form.scaled = scaled;
      form.scaled_segment = scaled && ends > 0 ? 1 : -1;
      const std::string text = vulkan::product_text(form, std::span(epilogues).first(ends), 1, nullptr, {});
      const std::vector<std::uint32_t> nv = vulkan::compile_glsl(text, "cooperative");
      EXPECT_EQ(module_faults(nv), "");
      const std::vector<std::uint32_t> khr = vulkan::spirv::finish(nv, "cooperative");
      using namespace vulkan::spirv;
      for (const auto& [before, after] : {std::pair{OpTypeCooperativeMatrixNV, OpTypeCooperativeMatrixKHR},
                                          {OpCooperativeMatrixLoadNV, OpCooperativeMatrixLoadKHR},
                                          {OpCooperativeMatrixStoreNV, OpCooperativeMatrixStoreKHR},
                                          {OpCooperativeMatrixMulAddNV, OpCooperativeMatrixMulAddKHR}}) {
        EXPECT_GT(count_of(nv, before), 0);
        EXPECT_EQ(count_of(khr, before), 0);
        EXPECT_EQ(count_of(khr, after), count_of(nv, before));
      }
      EXPECT_EQ(count_of(khr, OpTypeCooperativeMatrixKHR), 3);  // A, B and C
      vulkan::Capabilities lacks;
      lacks.storage_16bit = lacks.float16 = lacks.memory_model = lacks.subgroup_arithmetic = true;
      lacks.preserve_nan_inf = true;
      EXPECT_EQ(missing_features(khr, lacks, "cooperative"), std::vector<std::string>{"cooperative-matrix"});
    }
  }
}

TEST_F(VulkanSpirv, NamedPrograms) {
  for (const NamedProgram& program : named_programs()) {
    for (bool fusion : {true, false}) {
      const ScopedSettings scope(fusion);
      prepare(plan_for(program.build(kDevice)));
    }
  }
  expect_valid(20);
}

TEST_F(VulkanSpirv, RandomGraphs) {
  for (std::uint32_t seed = 1000; seed < 1040; ++seed) {
    const ScopedSettings scope(seed % 4 != 0);
    const RandomGraph graph(seed, DType::f32);
    if (const auto plan = plan_for(graph.build(kDevice))) prepare(plan);
  }
  expect_valid(60);
}

TEST_F(VulkanSpirv, Rows) {
  for (std::int64_t length : {1, 7, 64, 1000, 5000, 20000}) {
    for (std::int64_t rows : {1, 40, 700}) {
      for (bool columns : {false, true}) {
        PlanCase c(kDevice);
        const int x = c.input(DType::f32, rows * length);
        const int w = c.input(DType::f32, length);
        const int y = c.output(DType::f32, rows * length);
        const int z = c.output(DType::f32, rows * length);
        const int n = c.output(DType::f32, rows * length);
        const int r = c.output(DType::f32, rows);
        c.scalar(DType::f32, floating(1));
        c.scalar(DType::f32, floating(1));
        const Operand in = columns ? view(x, {1, rows}) : view(x, {length, 1});
        const Operand weight = view(w, {0, 1});
        c.region(softmax_kernel(DType::f32), {rows, length}, {in, view(y, {length, 1})}, 1);
        c.region(layer_norm_kernel(), {rows, length}, {in, weight, weight, view(z, {length, 1})}, 1);
        c.region(rms_norm_kernel(DType::f32), {rows, length},
                 {in, weight, view(n, {length, 1}), view(r, {1, 0})}, 1);
        prepare(c.shared_plan());
      }
    }
  }
  expect_valid(9);
}

/// Products of every type with two segments: plain, with an epilogue, with one of two outputs and
/// coordinates.
TEST_F(VulkanSpirv, Contractions) {
  for (DType type : {DType::f32, DType::f64, DType::i32, DType::i64, DType::u8}) {
    if (!backend_->supports(type)) continue;
    KernelBuilder one("add");
    const auto product = one.load(type);
    one.store(one.op(ScalarOp::add, product, one.load(type)));
    KernelBuilder two("add_place");
    const auto p = two.op(ScalarOp::mul, two.load(type), two.scalar(type));
    const auto sum = two.op(ScalarOp::add, p, two.load(type));
    two.store(two.op(ScalarOp::add, sum, two.cast(two.index(), type))).store(sum, DType::f32);
    const auto add = one.finish();
    const auto add_place = two.finish();
    for (const Shape& s : {Shape{1, 1, 64}, Shape{1, 300, 64}, Shape{300, 1, 64}, Shape{7, 9, 5},
                           Shape{130, 200, 64}, Shape{64, 64, 2000}}) {
      for (bool transposed : {false, true}) {
        PlanCase c(kDevice);
        const std::int64_t m = s[0], n = s[1], k = s[2];
        const int a = c.input(type, m * k);
        const int b = c.input(type, k * n);
        const int low = c.input(type, m * 8);
        const int high = c.input(type, n * 8);
        const int bias = c.input(type, n);
        const int z = c.output(type, m * n);
        const int real = c.output(DType::f32, m * n);
        c.scalar(type, {2, 2});
        const Operand left = transposed ? view(a, {1, 0, m}) : view(a, {k, 0, 1});
        const Operand right = transposed ? view(b, {0, k, 1}) : view(b, {0, 1, n});
        const Operand l = view(low, {8, 0, 1});
        const Operand h = view(high, {0, 8, 1});
        const Operand each = view(bias, {0, 1, 0});
        const Operand out = view(z, {n, 1, 0});
        const Shape dims{m, n, k};
        c.contract(type, dims, {left, right, out});
        c.contract(type, dims, {left, right, each, out}, add);
        c.contract(type, dims, {left, right, l, h, out}, nullptr, {{.k = 8, .scale = 0}});
        c.contract(type, dims, {left, right, l, h, each, view(-1, {n, 1, 0}), out, view(real, {n, 1, 0})},
                   add_place, {{.k = 8, .scale = 0}});
        prepare(c.shared_plan());
      }
    }
  }
  expect_valid(8);
}

TEST_F(VulkanSpirv, Attention) {
  const auto prepare_all = [&](ScoreKind score, std::int64_t m, std::int64_t size) {
    AttentionCase c(kDevice, {.heads = 2, .m = m, .n = 70, .d = size, .e = size, .score = score});
    c.add_forward();
    c.add_gradients();
    prepare(c.plan().shared_plan());
  };
  for (ScoreKind score : {ScoreKind::scaled, ScoreKind::boolean_mask, ScoreKind::full_mask, ScoreKind::bias,
                          ScoreKind::causal, ScoreKind::causal_bias, ScoreKind::capped})
    prepare_all(score, 70, 8);
  for (std::int64_t size : {33, 64, 256}) prepare_all(ScoreKind::causal, size == 33 ? 1 : 70, size);
  expect_valid(21);
}

}  // namespace
}  // namespace caldera::testing
