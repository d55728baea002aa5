// The doctor's own health: it passes the CPU device, and whatever goes wrong on a device, it says so. A
// backend that does wrong on purpose stands between it and the CPU device.
#include "engine/runtime/inspect/doctor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/check/doctor/checks.h"
#include "engine/check/doctor/families.h"
#include "engine/device/backend.h"
#include "engine/device/cpu/cpu_backend.h"

namespace caldera::testing {
namespace {

using doctor::Check;
using doctor::Examination;
using doctor::Report;

/// What a sick device does: empty functions do nothing.
struct Sickness {
  std::function<void(const Plan&)> on_submit;                           // may throw
  std::function<void(std::byte* bytes, std::size_t size)> on_download;  // changes what comes back
  std::function<bool(DType)> lacks;
  // Variants of the matrix product, which the CPU has none of. `variant` is what it says of a product's step.
  std::vector<ProductVariantInfo> product_variants;
  std::function<StepVariant(const Step&)> variant;
};

/// What the CPU made of a plan, with another word on the variants of its steps.
class SickExecutable final : public Executable {
 public:
  SickExecutable(std::unique_ptr<Executable> real, std::function<StepVariant(const Step&)> variant)
      : Executable(real->plan_ptr()), real_(std::move(real)), variant_(std::move(variant)) {}
  StepVariant variant_of(std::size_t step) const override {
    return variant_ ? variant_(plan().steps.at(step)) : StepVariant{};
  }
  Executable& real() { return *real_; }

 private:
  std::unique_ptr<Executable> real_;
  std::function<StepVariant(const Step&)> variant_;
};

class SickBackend : public Backend {
 public:
  explicit SickBackend(Sickness sickness) : sickness_(std::move(sickness)), real_(make_cpu_backend()) {}
  std::vector<ProductVariantInfo> product_variants() const override { return sickness_.product_variants; }

  const DeviceInfo& info() const override { return real_->info(); }
  bool supports(DType type) const override {
    return real_->supports(type) && !(sickness_.lacks && sickness_.lacks(type));
  }
  void set_memory_limit(std::uint64_t bytes) override { real_->set_memory_limit(bytes); }
  StoragePtr allocate(std::size_t bytes) override { return real_->allocate(bytes); }
  void upload(Storage& to, std::size_t offset, const void* from, std::size_t bytes) override {
    real_->upload(to, offset, from, bytes);
  }
  void download(Storage& from, std::size_t offset, void* to, std::size_t bytes) override {
    real_->download(from, offset, to, bytes);
    if (sickness_.on_download) sickness_.on_download(static_cast<std::byte*>(to), bytes);
  }
  std::unique_ptr<Executable> prepare(std::shared_ptr<const Plan> plan) override {
    return std::make_unique<SickExecutable>(real_->prepare(std::move(plan)), sickness_.variant);
  }
  Ticket submit(Executable& executable, const Bindings& bindings) override {
    if (sickness_.on_submit) sickness_.on_submit(executable.plan());
    return real_->submit(static_cast<SickExecutable&>(executable).real(), bindings);
  }
  void wait(Ticket ticket) override { real_->wait(ticket); }
  DeviceCounters counters() const override { return real_->counters(); }

 private:
  Sickness sickness_;
  std::unique_ptr<Backend> real_;
};

Report examine_family(const Sickness& sickness, const std::function<void(Examination&)>& family) {
  SickBackend backend(sickness);
  Examination x(backend, [&](const char*, const char*) { return std::make_unique<SickBackend>(sickness); });
  family(x);
  return x.take_report();
}

/// A device with three variants of the product, one of which it cannot take; it says `variant` of each
/// product.
Sickness with_variants(std::function<StepVariant(const Step&)> variant) {
  return {.product_variants = {{"first", ""}, {"second", ""}, {"third", "needs a third hand"}},
          .variant = std::move(variant)};
}

/// Products by the first variant.
Report examine_first_variant(const Sickness& sickness) {
  SickBackend backend(sickness);
  const auto again = [&](const char*, const char*) { return std::make_unique<SickBackend>(sickness); };
  return doctor::examine(backend, {.filter = "products: first", .progress = {}, .open_with = again});
}

const Check* find(const Report& report, const std::string& name) {
  for (const Check& check : report.checks)
    if (check.name == name) return &check;
  return nullptr;
}

TEST(Doctor, PassesTheCpu) {
  const auto backend = make_cpu_backend();
  const Report report = doctor::examine(*backend);
  for (const Check& check : report.checks)
    EXPECT_TRUE(check.good()) << check.name << ": " << (check.good() ? "" : check.complaints[0]);
  EXPECT_GT(report.checks.size(), 300U);
  EXPECT_EQ(report.failed(), 0);
}

TEST(Doctor, ExaminesADeviceByItsName) {
  const std::vector<std::string> names = doctor::family_names(Device::cpu());
  EXPECT_EQ(std::count(names.begin(), names.end(), "casts"), 1);
  std::vector<std::string> seen;
  const Report report = doctor::examine(
      Device::cpu(), "casts", [&](const std::string& family, const Report&) { seen.push_back(family); });
  EXPECT_EQ(seen, (std::vector<std::string>{"casts"}));
  EXPECT_GT(report.checks.size(), 20U);
  EXPECT_EQ(report.failed(), 0);
  EXPECT_TRUE(doctor::examine(Device::cpu(), "of no such name").checks.empty());
}

TEST(Doctor, ToleratedErrorsAreMeasured) {
  const Report report = examine_family({}, doctor::check_rows);
  const Check* softmax = find(report, "softmax of float32");
  ASSERT_NE(softmax, nullptr);
  EXPECT_GT(softmax->error, 0);
  EXPECT_LE(softmax->error, softmax->tolerance);
}

/// One kernel of many computes something else: its check fails, the others do not.
TEST(Doctor, NamesTheKernelThatIsWrong) {
  bool armed = false;
  Sickness sickness;
  sickness.on_submit = [&](const Plan& plan) {
    armed = !plan.steps.empty() && plan.steps[0].is<RegionStep>() && plan.steps[0].name() == "softmax";
  };
  sickness.on_download = [&](std::byte* bytes, std::size_t size) {
    if (!armed || size < 4000) return;
    float value = 0;  // one element in the middle, by one part in a thousand
    std::byte* place = bytes + size / 8 * 4;
    std::memcpy(&value, place, 4);
    value *= 1.001F;
    std::memcpy(place, &value, 4);
  };
  const Report report = examine_family(sickness, doctor::check_rows);
  const Check* softmax = find(report, "softmax of float32");
  ASSERT_NE(softmax, nullptr);
  EXPECT_FALSE(softmax->good());
  EXPECT_GT(softmax->error, softmax->tolerance);
  EXPECT_EQ(report.worst(1).at(0)->good(), false);
  const Check* other = find(report, "log softmax of float32");
  ASSERT_NE(other, nullptr);
  EXPECT_TRUE(other->good());
}

TEST(Doctor, SeesFlippedBitsInEveryFamily) {
  // The last bit of the highest byte but one of every fourth word: too much for any tolerance.
  Sickness sickness;
  sickness.on_download = [](std::byte* bytes, std::size_t size) {
    for (std::size_t i = 2; i < size; i += 16) bytes[i] ^= std::byte{0x40};
  };
  sickness.product_variants = {{"first", ""}};
  sickness.variant = [](const Step&) { return StepVariant{"first", ""}; };
  for (const doctor::Family& family : doctor::families(SickBackend(sickness)))
    EXPECT_GT(examine_family(sickness, family.run).failed(), 0) << family.name;
}

TEST(Doctor, ExaminesEveryWayToComputeProducts) {
  const char* opened = nullptr;  // the variant that the other backend was opened for
  Sickness sickness = with_variants([&](const Step&) { return StepVariant{opened, ""}; });
  SickBackend backend(sickness);
  std::vector<std::string> families;
  const Report report = doctor::examine(
      backend, {.filter = "products",
                .progress = [&](const std::string& family, const Report&) { families.push_back(family); },
                .open_with =
                    [&](const char* variable, const char* value) {
                      EXPECT_STREQ(variable, "CALDERA_TUNE");
                      opened = std::string_view(value) == "first" ? "first" : "second";
                      return std::make_unique<SickBackend>(sickness);
                    }});
  EXPECT_EQ(families,
            (std::vector<std::string>{"products", "products: first", "products: second", "products: third"}));
  EXPECT_EQ(report.failed(), 0);
  const auto usual = static_cast<std::size_t>(
      std::count_if(report.checks.begin(), report.checks.end(),
                    [](const Check& check) { return check.name.rfind("products: ", 0) != 0; }));
  EXPECT_GT(usual, 60U);
  // In other types than f32 a pinned variant has fewer shapes; and each has computed products.
  EXPECT_EQ((report.checks.size() - usual) % 2, 0U);
  EXPECT_GT(report.checks.size(), 2 * usual);
  ASSERT_NE(find(report, "products: second: product of float16, (8, 33, 65)"), nullptr);
  ASSERT_EQ(report.skipped.size(), 1U);
  EXPECT_EQ(report.skipped[0].name, "products: third");
  EXPECT_EQ(report.skipped[0].reason, "needs a third hand");
}

TEST(Doctor, SeesProductsThatGoAnotherWayThanThePinnedOne) {
  const Report report = examine_first_variant(with_variants([](const Step& step) {
    return StepVariant{step.as<ContractStep>().segments.size() > 1 ? "second" : "first", ""};
  }));
  const Check* plain = find(report, "products: first: product of float32, (7, 5, 3)");
  ASSERT_NE(plain, nullptr);
  EXPECT_TRUE(plain->good());
  const Check* lora = find(report, "products: first: LoRA of rank 8, (33, 65, 7)");
  ASSERT_NE(lora, nullptr);
  ASSERT_FALSE(lora->good());
  EXPECT_NE(lora->complaints[0].find("was computed by 'second' and not by 'first'"), std::string::npos);
}

TEST(Doctor, CountsProductsThatThePinnedWayIsNotFor) {
  const Report report = examine_first_variant(with_variants([](const Step& step) {
    return step.dtype == DType::f64 ? StepVariant{"third", "is not for doubles"} : StepVariant{"first", ""};
  }));
  EXPECT_EQ(find(report, "products: first: product of float64, (8, 33, 65)"), nullptr);
  ASSERT_NE(find(report, "products: first: product of int64, (8, 33, 65)"), nullptr);
  const auto skip = std::find_if(report.skipped.begin(), report.skipped.end(),
                                 [](const doctor::Skip& s) { return s.reason == "is not for doubles"; });
  ASSERT_NE(skip, report.skipped.end());
  EXPECT_EQ(skip->name.rfind("products: first: 16 of ", 0), 0U) << skip->name;  // 2 shapes, 8 transposes
}

TEST(Doctor, AWayThatNoProductGoesIsNotTakenForRight) {
  const Report report = examine_first_variant(with_variants([](const Step&) {
    return StepVariant{"plain", "is for nothing"};
  }));
  const Check* check = find(report, "products: first: has computed products");
  ASSERT_NE(check, nullptr);
  EXPECT_FALSE(check->good());
}

TEST(Doctor, SeesAMemoryLimitThatHoldsNothing) {
  class Boundless final : public SickBackend {
   public:
    Boundless() : SickBackend({}) {}
    void set_memory_limit(std::uint64_t) override {}
  } backend;
  Examination x(backend, nullptr);
  doctor::check_memory(x);
  const Check* check = find(x.report(), "memory: more than a limit allows");
  ASSERT_NE(check, nullptr);
  EXPECT_FALSE(check->good());
}

TEST(Doctor, SeesBytesThatAreLostInTransfers) {
  Sickness sickness;
  sickness.on_download = [](std::byte* bytes, std::size_t size) {
    if (size > (std::size_t{1} << 20)) bytes[size - 70] = ~bytes[size - 70];
  };
  const Report report = examine_family(sickness, doctor::check_transfers);
  ASSERT_NE(find(report, "transfers: 65537 bytes"), nullptr);
  EXPECT_TRUE(find(report, "transfers: 65537 bytes")->good());
  ASSERT_NE(find(report, "transfers: 41943040 bytes"), nullptr);
  EXPECT_FALSE(find(report, "transfers: 41943040 bytes")->good());
}

TEST(Doctor, GoesOnAfterErrorsAndQuotesThem) {
  Sickness sickness;
  sickness.on_submit = [](const Plan& plan) {
    if (!plan.steps.empty() && plan.steps[0].is<ScatterStep>()) throw DeviceError("the device is lost");
  };
  const Report report = examine_family(sickness, doctor::check_indexed);
  const Check* scatter = find(report, "scatter-add of float32, inner 7");
  ASSERT_NE(scatter, nullptr);
  ASSERT_FALSE(scatter->good());
  EXPECT_EQ(scatter->complaints[0], "the device is lost");
  const Check* gather = find(report, "gather of float32, inner 7");
  ASSERT_NE(gather, nullptr);
  EXPECT_TRUE(gather->good());
}

TEST(Doctor, ListsWhatTheDeviceLacks) {
  Sickness sickness;
  sickness.lacks = [](DType type) { return type == DType::f64; };
  const Report report = examine_family(sickness, doctor::check_reductions);
  EXPECT_EQ(report.failed(), 0);
  ASSERT_EQ(report.skipped.size(), 1U);
  EXPECT_EQ(report.skipped[0].name, "reductions of float64");
  EXPECT_EQ(report.skipped[0].reason, "the device lacks the type");
}

}  // namespace
}  // namespace caldera::testing
