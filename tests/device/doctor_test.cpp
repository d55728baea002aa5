// The doctor's own health: it passes the CPU device, and whatever goes wrong on a device, it says so. A
// backend that does wrong on purpose stands between it and the CPU device.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <string>
#include <utility>

#include "engine/device/cpu/cpu_backend.h"
#include "engine/device/doctor/families.h"
#include "engine/tensor/error.h"

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
};

class SickBackend final : public Backend {
 public:
  explicit SickBackend(Sickness sickness) : sickness_(std::move(sickness)), real_(make_cpu_backend()) {}

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
    return real_->prepare(std::move(plan));
  }
  Ticket submit(Executable& executable, const Bindings& bindings) override {
    if (sickness_.on_submit) sickness_.on_submit(executable.plan());
    return real_->submit(executable, bindings);
  }
  void wait(Ticket ticket) override { real_->wait(ticket); }
  DeviceCounters counters() const override { return real_->counters(); }

 private:
  Sickness sickness_;
  std::unique_ptr<Backend> real_;
};

Report examine_family(Sickness sickness, void (*family)(Examination&)) {
  SickBackend backend(std::move(sickness));
  Examination x(backend, nullptr);
  family(x);
  return x.take_report();
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
    armed =
        !plan.steps.empty() && plan.steps[0].kind == StepKind::region && plan.steps[0].name() == "softmax";
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
  for (const doctor::Family& family : doctor::families())
    EXPECT_GT(examine_family(sickness, family.run).failed(), 0) << family.name;
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
    if (!plan.steps.empty() && plan.steps[0].kind == StepKind::scatter_add)
      throw DeviceError("the device is lost");
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
