// The tuner of matrix products: measures once, remembers, trusts no file, and can be told.
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/device/backend.h"
#include "engine/device/vulkan/products/product_problem.h"
#include "engine/device/vulkan/products/product_trial.h"
#include "engine/device/vulkan/products/product_tuner.h"
#include "engine/device/vulkan/steps/context.h"
#include "engine/device/vulkan/steps/encode.h"
#include "engine/device/vulkan/vulkan_backend.h"
#include "tests/support/devices.h"
#include "tests/support/plans/plan_case.h"
#include "tests/support/scoped_variable.h"
#include "tests/support/temp_folder.h"

namespace caldera::testing {
namespace {

namespace fs = std::filesystem;
using vulkan::find_product_variant;
using vulkan::ProductShape;
using vulkan::ProductTuner;
using vulkan::ProductVariant;
using vulkan::TuneSetting;

class VulkanTuner : public ::testing::Test {
 protected:
  void SetUp() override {
    can_.subgroup_arithmetic = true;
    can_.max_invocations = 1024;
    can_.shared_memory = 48 << 10;
  }

  /// A tuner of a device on which `fastest` takes half the time of all others.
  std::string choose(TuneSetting setting, const std::string& fastest, const ProductShape& shape,
                     const std::string& identity = "device-1") {
    ProductTuner tuner(std::move(setting), identity, directory_);
    const auto time = [&](const ProductVariant& v, double) -> std::optional<double> {
      ++timed_[v.name];
      return v.name == fastest ? 1.0 : 2.0;
    };
    const std::string first = tuner.choose(shape, can_, vulkan::kGpuRates, time).name;
    EXPECT_EQ(tuner.choose(shape, can_, vulkan::kGpuRates, time).name, first);
    file_ = tuner.file();
    return first;
  }

  static std::string content(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void write(const fs::path& file, const std::string& bytes) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << bytes;
  }

  static constexpr ProductShape kShape{.m = 300, .n = 300, .k = 300};
  TempFolder folder_;
  const fs::path directory_ = folder_ / "cache";
  fs::path file_;
  vulkan::Capabilities can_;
  std::map<std::string, int> timed_;
  const TuneSetting measure_{.measure = true};
};

TEST_F(VulkanTuner, MeasuresAClassOnceAndRemembers) {
  const std::string usual = default_product_variant(kShape, can_, vulkan::kGpuRates).name;
  ASSERT_NE(usual, "shared-128");
  EXPECT_EQ(choose(measure_, "shared-128", kShape), "shared-128");
  for (const auto& [name, times] : timed_) EXPECT_EQ(times, 1) << name;
  EXPECT_GE(timed_.size(), 3U);
  EXPECT_EQ(timed_.count("vector-k"), 0U);  // 300 rows: no candidate
  timed_.clear();
  // Another process: the same class is known, another one is not, nor is another device.
  EXPECT_EQ(choose(measure_, "shared-32", {.m = 290, .n = 310, .k = 512}), "shared-128");
  EXPECT_TRUE(timed_.empty());
  EXPECT_EQ(choose(measure_, "shared-32", {.m = 300, .n = 300, .k = 2000}), "shared-32");
  EXPECT_FALSE(timed_.empty());
  timed_.clear();
  EXPECT_EQ(choose(measure_, "shared-64", kShape, "device-2"), "shared-64");
  EXPECT_FALSE(timed_.empty());
  timed_.clear();
  EXPECT_EQ(choose(measure_, "shared-32", kShape), "shared-128");  // both classes are in the file
  EXPECT_TRUE(timed_.empty());
}

TEST_F(VulkanTuner, PlainIsOnlyTriedWhereNoTilesAreShared) {
  choose(measure_, "plain", kShape);
  EXPECT_EQ(timed_.count("plain"), 0U);
  timed_.clear();
  EXPECT_EQ(choose(measure_, "plain", {.m = 4, .n = 300, .k = 300}), "plain");
  EXPECT_EQ(timed_["plain"], 1);
}

/// The limit that each variant gets, on a device on which the n-th takes `seconds[n]`.
TEST_F(VulkanTuner, WhatTakesTwiceAsLongIsGivenUp) {
  ProductTuner tuner(measure_, "device-1", directory_);
  const std::vector<double> seconds{8, 4, 10, 9};
  std::vector<double> limits;
  const auto time = [&](const ProductVariant&, double stop_at) -> std::optional<double> {
    limits.push_back(stop_at);
    return seconds[std::min(limits.size(), seconds.size()) - 1];
  };
  tuner.choose({.m = 20, .n = 300, .k = 300}, can_, vulkan::kGpuRates, time);
  ASSERT_GE(limits.size(), 3U);
  EXPECT_EQ(limits[0], std::numeric_limits<double>::infinity());
  EXPECT_DOUBLE_EQ(limits[1], 2 * 0.95 * 8);  // to beat the table it has to be clearly faster
  for (std::size_t i = 2; i < limits.size(); ++i) EXPECT_DOUBLE_EQ(limits[i], 2 * 4.0) << i;
}

TEST_F(VulkanTuner, AClassThatTakesLongIsDecidedByWhatIsKnown) {
  double now = 100;
  const auto tuner = std::make_unique<ProductTuner>(measure_, "device-1", directory_, [&] { return now; });
  int calls = 0;
  const auto time = [&](const ProductVariant&, double) -> std::optional<double> {
    now += 1.5;  // pipelines take long to make
    return 1.0 / ++calls;
  };
  const std::string chosen = tuner->choose(kShape, can_, vulkan::kGpuRates, time).name;
  EXPECT_EQ(calls, 2) << "the third would begin after three seconds";
  EXPECT_NE(chosen, default_product_variant(kShape, can_, vulkan::kGpuRates).name);
  EXPECT_EQ(tuner->choose(kShape, can_, vulkan::kGpuRates, time).name, chosen);
  EXPECT_EQ(calls, 2) << "remembered all the same";
}

// ---- Trials ----------------------------------------------------------------------------------------------

/// A device that takes `seconds` for a dispatch, the first three times as long.
struct FakeDevice {
  double seconds;
  std::vector<int> submits;
  double spent = 0;

  double time(double stop_at) {
    return vulkan::best_of_few(
        [&](int dispatches) {
          const double took = seconds * dispatches * (submits.empty() ? 3 : 1);
          submits.push_back(dispatches);
          spent += took;
          return took;
        },
        stop_at);
  }
};

TEST(VulkanTrial, RunsWhatFitsIntoShortSubmits) {
  constexpr double kNever = std::numeric_limits<double>::infinity();
  FakeDevice fast{1e-4, {}}, slow{8e-3, {}}, lame{0.7, {}};
  EXPECT_DOUBLE_EQ(fast.time(kNever), 1e-4);
  EXPECT_EQ(fast.submits, (std::vector<int>{1, 4, 4, 4, 4}));
  EXPECT_DOUBLE_EQ(slow.time(kNever), 8e-3);
  EXPECT_LT(slow.spent, 0.15);
  lame.time(kNever);
  EXPECT_EQ(lame.submits, (std::vector<int>{1})) << "one dispatch of seconds is one too many";
}

TEST(VulkanTrial, EndsWhereItCannotWin) {
  FakeDevice hopeless{1, {}}, cold{1, {}}, good{1e-3, {}};
  EXPECT_GT(hopeless.time(0.01), 0.01);
  EXPECT_EQ(hopeless.submits.size(), 1U);
  EXPECT_DOUBLE_EQ(cold.time(0.9), 1) << "the first may be slow for being the first";
  EXPECT_EQ(cold.submits.size(), 2U);
  EXPECT_DOUBLE_EQ(good.time(2e-3), 1e-3);
  EXPECT_GT(good.submits.size(), 2U);
}

Step product(const Shape& dims, bool shared_b = true) {
  const std::int64_t m = dims[dims.rank() - 3], n = dims[dims.rank() - 2], k = dims[dims.rank() - 1];
  Step step;
  step.dtype = DType::f32;
  step.dims = dims;
  step.work = ContractStep{.segments = {{.k = k}}, .epilogue = nullptr};
  if (dims.rank() == 3)
    step.operands = {view(0, {k, 0, 1}), view(1, {0, 1, n}), view(2, {n, 1, 0})};
  else
    step.operands = {view(0, {m * k, k, 0, 1}), view(1, {shared_b ? 0 : n * k, 0, 1, n}),
                     view(2, {m * n, n, 1, 0})};
  return step;
}

TEST(VulkanTrial, AreSmallAndOfTheSameKind) {
  const auto dims_of = [](const Step& step) {
    return vulkan::trial_step(step, vulkan::kMostTrialFlops).dims;
  };
  EXPECT_EQ(dims_of(product({512, 512, 512})), (Shape{512, 512, 512})) << "small enough";
  const Shape large = dims_of(product({4096, 8192, 2048}));
  EXPECT_EQ(large[2], 2048);
  EXPECT_LE(2 * large.numel(), vulkan::kMostTrialFlops);
  EXPECT_GT(large.numel(), vulkan::kMostTrialFlops / 8);
  EXPECT_LE(std::max(large[0], large[1]), 2 * std::min(large[0], large[1]));
  EXPECT_EQ(dims_of(product({8, 128256, 4096}))[0], 8) << "few rows stay few";
  EXPECT_EQ(dims_of(product({1024, 512, 512, 64}, false)), (Shape{128, 512, 512, 64})) << "batches first";
  // Rows of a batch that has one B join M, in the trial as well.
  const Step linear = vulkan::trial_step(product({8, 512, 8192, 2048}), vulkan::kMostTrialFlops);
  EXPECT_EQ(vulkan::make_problem(linear).batches(), 1);
  EXPECT_GE(vulkan::make_problem(linear).m, 512);
}

TEST(VulkanTrial, AFastDeviceGetsMore) {
  EXPECT_EQ(vulkan::further_flops(vulkan::kMostTrialFlops, 0.1), vulkan::kMostTrialFlops);
  EXPECT_EQ(vulkan::further_flops(vulkan::kMostTrialFlops, 0.001), 20 * vulkan::kMostTrialFlops);
}

TEST_F(VulkanTuner, NearlyAsFastIsNoReasonToLeaveTheTable) {
  ProductTuner tuner(measure_, "device-1", directory_);
  const ProductVariant& usual = default_product_variant(kShape, can_, vulkan::kGpuRates);
  const auto time = [&](const ProductVariant& v, double) -> std::optional<double> {
    return &v == &usual ? 1.0 : 0.97;
  };
  EXPECT_EQ(tuner.choose(kShape, can_, vulkan::kGpuRates, time).name, std::string(usual.name));
}

TEST_F(VulkanTuner, WhatCannotBeMeasuredIsNotRemembered) {
  ProductTuner tuner(measure_, "device-1", directory_);
  int calls = 0;
  const auto time = [&](const ProductVariant&, double) -> std::optional<double> {
    ++calls;
    return std::nullopt;
  };
  const std::string usual = default_product_variant(kShape, can_, vulkan::kGpuRates).name;
  EXPECT_EQ(tuner.choose(kShape, can_, vulkan::kGpuRates, time).name, usual);
  EXPECT_EQ(tuner.choose(kShape, can_, vulkan::kGpuRates, time).name, usual);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(tuner.measured(), 0U);
  EXPECT_FALSE(fs::exists(tuner.file()));
}

TEST_F(VulkanTuner, DamagedFilesAreIgnored) {
  ASSERT_EQ(choose(measure_, "shared-128", kShape), "shared-128");
  const std::string good = content(file_);
  const fs::path file = file_;
  const std::size_t header = good.find('\n');
  for (std::size_t at = 0; at <= header; at += 3) {  // nothing of a file with another first line is taken
    std::string altered = good;
    altered[at] = static_cast<char>(altered[at] ^ 0x41);
    write(file, altered);
    timed_.clear();
    EXPECT_EQ(choose(measure_, "shared-32", kShape), "shared-32") << at;
    EXPECT_FALSE(timed_.empty()) << at;
  }
  for (std::size_t keep = 0; keep < good.size(); keep += 7) {
    write(file, good.substr(0, keep));
    choose(measure_, "shared-128", kShape);
  }
  const std::string first_line = good.substr(0, header + 1);
  const std::string key = ProductTuner::class_of(kShape);
  for (const std::string& line : {key, key + " ", key + " no-such-variant", std::string(" "), key + "  plain",
                                  std::string(5000, 'x'), std::string("\0\xff\n\n", 4), key + " plain\r"}) {
    write(file, first_line + line + "\n");
    EXPECT_EQ(choose(measure_, "shared-32", kShape), "shared-32") << line.substr(0, 60);
  }
  // A variant that this device cannot run.
  can_.max_invocations = 64;
  write(file, first_line + key + " shared-128\n");
  timed_.clear();
  EXPECT_EQ(choose(measure_, "shared-32", kShape), "shared-32");
  EXPECT_FALSE(timed_.empty()) << "measured anew";
}

TEST_F(VulkanTuner, CanBeSwitchedOffAndPinned) {
  const std::string usual = default_product_variant(kShape, can_, vulkan::kGpuRates).name;
  EXPECT_EQ(choose({}, "shared-128", kShape), usual);
  EXPECT_TRUE(timed_.empty());
  EXPECT_FALSE(fs::exists(directory_));
  EXPECT_EQ(choose({.pinned = find_product_variant("vector-n")}, "shared-128", kShape), "vector-n");
  can_.max_invocations = 128;  // vector-n needs 256
  EXPECT_EQ(choose({.pinned = find_product_variant("vector-n")}, "shared-128", kShape), usual);
  EXPECT_TRUE(timed_.empty());

  // A file of choices, from whatever device; what it does not know is the table's.
  can_.max_invocations = 1024;
  ASSERT_EQ(choose(measure_, "shared-128", kShape), "shared-128");
  const fs::path choices = directory_ / "mine.txt";
  fs::copy_file(file_, choices);
  timed_.clear();
  EXPECT_EQ(choose({.choices = choices}, "shared-32", kShape, "device-3"), "shared-128");
  const ProductShape other{.m = 4000, .n = 4000, .k = 4000};
  EXPECT_EQ(choose({.choices = choices}, "shared-128", other),
            default_product_variant(other, can_, vulkan::kGpuRates).name);
  EXPECT_TRUE(timed_.empty());
}

TEST_F(VulkanTuner, AFileOfChoicesThatIsNotOneIsRefused) {
  const fs::path other = directory_ / "other.txt";
  std::ofstream(other) << "caldera something else\n";
  for (const fs::path& file : {directory_ / "missing.txt", other, directory_}) {
    TuneSetting setting;
    setting.choices = file;
    try {
      const ProductTuner tuner(setting, "device-3", directory_);
      ADD_FAILURE() << file << " is accepted";
    } catch (const ValueError& e) {
      EXPECT_NE(std::string(e.what()).find(file.string()), std::string::npos) << e.what();
    }
  }
}

TEST_F(VulkanTuner, TheVariableSaysHow) {
  const auto setting = [](const std::string& value, bool measured) {
    const ScopedVariable tune("CALDERA_TUNE", value);
    return TuneSetting::from_environment(measured);
  };
  EXPECT_TRUE(setting("", true).measure);
  EXPECT_FALSE(setting("", false).measure);
  EXPECT_FALSE(setting("0", true).measure);
  EXPECT_TRUE(setting("1", false).measure);
  EXPECT_EQ(setting("shared-64", true).pinned, find_product_variant("shared-64"));
  EXPECT_EQ(setting("./choices.txt", false).choices, fs::path("./choices.txt"));
  EXPECT_FALSE(setting("./choices.txt", false).measure);
  try {
    setting("fastest", false);
    ADD_FAILURE() << "an unknown variant is accepted";
  } catch (const ValueError& e) {
    EXPECT_NE(std::string(e.what()).find("vector-k-tree"), std::string::npos) << e.what();
  }
}

/// A plan of products of several classes, on the device itself.
TEST_F(VulkanTuner, MeasuresOnTheDeviceAheadOfTheFirstRun) {
  CALDERA_REQUIRE_DEVICE(Device::vulkan(0));
  PlanCase c(Device::vulkan(0), 7);
  const std::int64_t m = 33, n = 65, k = 70;
  const int a = c.input(DType::f32, m * k);
  const int b = c.input(DType::f32, k * n);
  const int low = c.input(DType::f32, m * 8);
  const int high = c.input(DType::f32, n * 8);
  const int z = c.output(DType::f32, m * n);
  const int row = c.output(DType::f32, n);
  c.scalar(DType::f32, floating(2));
  const Operand left = view(a, {k, 0, 1});
  const Operand right = view(b, {0, 1, n});
  c.contract(DType::f32, {m, n, k},
             {left, right, view(low, {8, 0, 1}), view(high, {0, 8, 1}), view(z, {n, 1, 0})}, nullptr,
             {{.k = 8, .scale = 0}});
  c.contract(DType::f32, {1, n, k}, {left, right, view(row, {n, 1, 0})});

  const ScopedVariable cache("CALDERA_CACHE_DIR", directory_.string());
  const ScopedVariable tune("CALDERA_TUNE", "1");
  const vulkan::PhysicalDevice& physical = vulkan::physical_devices().at(0);
  bool hasty = false;  // a class whose trials were broken off is tried again by the next process
  {
    vulkan::Context context(physical);
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(encode(*c.shared_plan(), context).dispatches.size(), 2U);
    EXPECT_EQ(context.tuner.measured(), 2U);
    hasty = std::chrono::steady_clock::now() - begin > std::chrono::seconds(2);
    EXPECT_TRUE(hasty || fs::exists(context.tuner.file()));
    encode(*c.shared_plan(), context);
    EXPECT_EQ(context.tuner.measured(), 2U);
  }
  {
    vulkan::Context context(physical);
    encode(*c.shared_plan(), context);
    EXPECT_TRUE(hasty || context.tuner.measured() == 0);
  }
  c.check_on(*make_vulkan_backend(0), {1e-5, 1e-4});
}

}  // namespace
}  // namespace caldera::testing
