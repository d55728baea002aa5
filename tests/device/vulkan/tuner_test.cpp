// The tuner of matrix products: measures once, remembers, trusts no file, and can be told.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "engine/device/backend.h"
#include "engine/device/vulkan/products/product_tuner.h"
#include "engine/device/vulkan/steps/context.h"
#include "engine/device/vulkan/steps/encode.h"
#include "engine/device/vulkan/vulkan_backend.h"
#include "engine/tensor/error.h"
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
    const auto time = [&](const ProductVariant& v) -> std::optional<double> {
      ++timed_[v.name];
      return v.name == fastest ? 1.0 : 2.0;
    };
    const std::string first = tuner.choose(shape, can_, false, time).name;
    EXPECT_EQ(tuner.choose(shape, can_, false, time).name, first);
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
  const std::string usual = default_product_variant(kShape, can_, false).name;
  ASSERT_NE(usual, "plain");
  EXPECT_EQ(choose(measure_, "plain", kShape), "plain");
  for (const auto& [name, times] : timed_) EXPECT_EQ(times, 1) << name;
  EXPECT_GE(timed_.size(), 3U);
  EXPECT_EQ(timed_.count("vector-k"), 0U);  // 300 rows: no candidate
  timed_.clear();
  // Another process: the same class is known, another one is not, nor is another device.
  EXPECT_EQ(choose(measure_, "shared-32", {.m = 290, .n = 310, .k = 512}), "plain");
  EXPECT_TRUE(timed_.empty());
  EXPECT_EQ(choose(measure_, "shared-32", {.m = 300, .n = 300, .k = 2000}), "shared-32");
  EXPECT_FALSE(timed_.empty());
  timed_.clear();
  EXPECT_EQ(choose(measure_, "shared-64", kShape, "device-2"), "shared-64");
  EXPECT_FALSE(timed_.empty());
  timed_.clear();
  EXPECT_EQ(choose(measure_, "shared-32", kShape), "plain");  // both classes are in the file
  EXPECT_TRUE(timed_.empty());
}

TEST_F(VulkanTuner, NearlyAsFastIsNoReasonToLeaveTheTable) {
  ProductTuner tuner(measure_, "device-1", directory_);
  const ProductVariant& usual = default_product_variant(kShape, can_, false);
  const auto time = [&](const ProductVariant& v) -> std::optional<double> {
    return &v == &usual ? 1.0 : 0.97;
  };
  EXPECT_EQ(tuner.choose(kShape, can_, false, time).name, std::string(usual.name));
}

TEST_F(VulkanTuner, WhatCannotBeMeasuredIsNotRemembered) {
  ProductTuner tuner(measure_, "device-1", directory_);
  int calls = 0;
  const auto time = [&](const ProductVariant&) -> std::optional<double> {
    ++calls;
    return std::nullopt;
  };
  const std::string usual = default_product_variant(kShape, can_, false).name;
  EXPECT_EQ(tuner.choose(kShape, can_, false, time).name, usual);
  EXPECT_EQ(tuner.choose(kShape, can_, false, time).name, usual);
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(tuner.measured(), 0U);
  EXPECT_FALSE(fs::exists(tuner.file()));
}

TEST_F(VulkanTuner, DamagedFilesAreIgnored) {
  ASSERT_EQ(choose(measure_, "plain", kShape), "plain");
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
    choose(measure_, "plain", kShape);
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
  EXPECT_EQ(choose(measure_, "plain", kShape), "plain");
}

TEST_F(VulkanTuner, CanBeSwitchedOffAndPinned) {
  const std::string usual = default_product_variant(kShape, can_, false).name;
  EXPECT_EQ(choose({}, "plain", kShape), usual);
  EXPECT_TRUE(timed_.empty());
  EXPECT_FALSE(fs::exists(directory_));
  EXPECT_EQ(choose({.pinned = find_product_variant("vector-n")}, "plain", kShape), "vector-n");
  can_.max_invocations = 128;  // vector-n needs 256
  EXPECT_EQ(choose({.pinned = find_product_variant("vector-n")}, "plain", kShape), usual);
  EXPECT_TRUE(timed_.empty());

  // A file of choices, from whatever device; what it does not know is the table's.
  can_.max_invocations = 1024;
  ASSERT_EQ(choose(measure_, "plain", kShape), "plain");
  const fs::path choices = directory_ / "mine.txt";
  fs::copy_file(file_, choices);
  timed_.clear();
  EXPECT_EQ(choose({.choices = choices}, "shared-32", kShape, "device-3"), "plain");
  const ProductShape other{.m = 4000, .n = 4000, .k = 4000};
  EXPECT_EQ(choose({.choices = choices}, "plain", other), default_product_variant(other, can_, false).name);
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
  const auto setting = [](const std::string& value, bool software) {
    const ScopedVariable tune("CALDERA_TUNE", value);
    return TuneSetting::from_environment(software);
  };
  EXPECT_TRUE(setting("", false).measure);
  EXPECT_FALSE(setting("", true).measure);
  EXPECT_FALSE(setting("0", false).measure);
  EXPECT_TRUE(setting("1", true).measure);
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
  {
    vulkan::Context context(physical);
    EXPECT_EQ(encode(*c.shared_plan(), context).dispatches.size(), 2U);
    EXPECT_EQ(context.tuner.measured(), 2U);
    EXPECT_TRUE(fs::exists(context.tuner.file()));
    encode(*c.shared_plan(), context);
    EXPECT_EQ(context.tuner.measured(), 2U);
  }
  {
    vulkan::Context context(physical);
    encode(*c.shared_plan(), context);
    EXPECT_EQ(context.tuner.measured(), 0U);
  }
  c.check_on(*make_vulkan_backend(0), {1e-5, 1e-4});
}

}  // namespace
}  // namespace caldera::testing
