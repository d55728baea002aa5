// CALDERA_CHECK: right programs pass, a wrong step is found and named.
#include "engine/check/stepwise/step_check.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "engine/base/error.h"
#include "engine/caldera.h"
#include "engine/check/stepwise/dispatch_plan.h"
#include "engine/check/stepwise/left_out_parts.h"
#include "engine/device/control/plan_executable.h"
#include "engine/runtime/evaluate.h"
#include "tests/support/devices.h"
#include "tests/support/idle_backend.h"
#include "tests/support/plans/plan_case.h"
#include "tests/support/plans/row_kernels.h"

namespace caldera::testing {
namespace {

/// A device that computes what another does, but for one number of one download.
class WrongBackend : public IdleBackend {
 public:
  WrongBackend(Backend& right, int wrong_submit, double factor)
      : right_(right), wrong_submit_(wrong_submit), factor_(static_cast<float>(factor)) {}

  const DeviceInfo& info() const override { return right_.info(); }
  StoragePtr allocate(std::size_t bytes) override { return right_.allocate(bytes); }
  void upload(Storage& to, std::size_t offset, const void* from, std::size_t bytes) override {
    right_.upload(to, offset, from, bytes);
  }
  void download(Storage& from, std::size_t offset, void* to, std::size_t bytes) override {
    right_.download(from, offset, to, bytes);
    if (submits_ == wrong_submit_) static_cast<float*>(to)[1] *= factor_;
  }
  std::unique_ptr<Executable> prepare(std::shared_ptr<const Plan> plan) override {
    return right_.prepare(plan);
  }
  Ticket submit(Executable& executable, const Bindings& bindings) override {
    ++submits_;
    return right_.submit(executable, bindings);
  }
  void wait(Ticket ticket) override { right_.wait(ticket); }
  CodeWriter code_writer() const override { return right_.code_writer(); }

 private:
  Backend& right_;
  int submits_ = 0;
  int wrong_submit_;
  float factor_;
};

/// Two steps, softmax of rows and then a sum of the rows, on memory of the device.
class TwoSteps {
 public:
  explicit TwoSteps(Device device) : case_(device), device_(shared_backend(device)) {
    const int x = case_.input(DType::f32, 4 * 8);
    const int sum = case_.output(DType::f32, 4);
    const int softmax = case_.arena(DType::f32, 4 * 8);
    case_.region(softmax_kernel(DType::f32), {4, 8}, {view(x, {8, 1}), view(softmax, {8, 1})}, 1);
    case_.region(softmax_kernel(DType::f32), {1, 4}, {view(softmax, {0, 8}), view(sum, {0, 1})}, 1);
  }

  void run(Backend& backend, std::optional<std::uint64_t> step = {}) {
    std::vector<StoragePtr> storages;
    Bindings bindings;
    std::vector<float> x(32);
    std::iota(x.begin(), x.end(), -9.0F);
    for (const std::size_t elements : {32, 4}) {
      storages.push_back(device_.allocate(elements * sizeof(float)));
      device_.upload(*storages.back(), 0, x.data(), elements * sizeof(float));
      bindings.slots.push_back({storages.back().get(), 0});
    }
    const auto executable = device_.prepare(case_.shared_plan());
    submit_checked(backend, *executable, bindings, 7, step);
    result_.resize(4);
    device_.download(*storages[1], 0, result_.data(), 4 * sizeof(float));
  }
  const std::vector<float>& result() const { return result_; }

 private:
  PlanCase case_;
  Backend& device_;
  std::vector<float> result_;
};

class StepCheck : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
  void TearDown() override { settings() = saved_; }

  /// The program's results, with every step checked, are those without.
  static void expect_passes(const std::function<std::vector<LazyTensor>()>& program) {
    std::vector<std::vector<double>> plain;
    for (const LazyTensor& output : program()) plain.push_back(output.astype(DType::f64).to_vector<double>());
    settings().check.on = true;
    std::size_t k = 0;
    for (const LazyTensor& output : program())
      EXPECT_EQ(output.astype(DType::f64).to_vector<double>(), plain.at(k++)) << "output " << k;
    settings().check.on = false;
  }

  /// What is reported of step 0 of every evaluation of a program.
  static std::string reports_of(const std::function<LazyTensor()>& program) {
    settings().check = {.on = true, .step = 0};
    ::testing::internal::CaptureStderr();
    program().eval();
    settings().check = {};
    return ::testing::internal::GetCapturedStderr();
  }

 private:
  const Settings saved_ = settings();
};

TEST_P(StepCheck, ARightPlanPassesAndLeavesItsResults) {
  TwoSteps steps(GetParam());
  steps.run(shared_backend(GetParam()));
  // Every row of x is the one before plus 8: the four first columns of its softmax are one number.
  EXPECT_EQ(steps.result(), std::vector<float>(4, 0.25F));
}

TEST_P(StepCheck, NamesTheFirstStepThatIsWrong) {
  for (const int step : {0, 1}) {
    TwoSteps steps(GetParam());
    WrongBackend wrong(shared_backend(GetParam()), step + 1, 1.001);
    ::testing::internal::CaptureStderr();
    try {
      steps.run(wrong);
      ADD_FAILURE() << "step " << step << " passed";
    } catch (const CheckError& error) {
      const std::string expected = "evaluation 7, step " + std::to_string(step) + " of 2: ";
      EXPECT_EQ(std::string(error.what()).substr(0, expected.size()), expected);
    }
    const std::string report = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(report.find("operand 0"), std::string::npos) << report;
    EXPECT_NE(report.find("row_max"), std::string::npos) << report;  // its code
    EXPECT_NE(report.find("alone: CALDERA_CHECK=7." + std::to_string(step) + " "), std::string::npos)
        << report;
  }
}

TEST_P(StepCheck, ARoundingIsNoMistake) {
  TwoSteps steps(GetParam());
  WrongBackend nearly(shared_backend(GetParam()), 1, 1 + 0x1p-23);
  EXPECT_NO_THROW(steps.run(nearly));
}

TEST_P(StepCheck, OneStepAloneIsPrintedAndTheOthersAreNotChecked) {
  TwoSteps steps(GetParam());
  WrongBackend wrong(shared_backend(GetParam()), 1, 1.5);
  ::testing::internal::CaptureStderr();
  EXPECT_NO_THROW(steps.run(wrong, 1));
  const std::string report = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(report.find("step 1 of 2"), std::string::npos) << report;
  EXPECT_NE(report.find("within its bounds"), std::string::npos) << report;
}

TEST_P(StepCheck, EvaluationsAreChecked) {
  const Device device = GetParam();
  const LazyTensor x = LazyTensor::from_vector(std::vector<float>{1, 2, 3, 4}, {2, 2}, device);
  const std::string report = reports_of([&] { return softmax(x + 1.0); });
  EXPECT_NE(report.find("within its bounds"), std::string::npos) << report;
  EXPECT_EQ(reports_of([&] { return x; }), "");  // nothing runs
}

TEST_P(StepCheck, LoopsAndBranchesPass) {
  const Device device = GetParam();
  const LazyTensor x = LazyTensor::from_vector<float>({0.3F, -0.7F, 1.1F, 0.4F, 0.2F, 0.9F}, {3, 2}, device);
  const auto turn = [](auto carry, auto slices) {
    const LazyTensor h = sin(carry[0] + slices[0]);
    return ScanTurn{{h}, {h * carry[0]}};
  };
  const auto total = [&](std::int64_t snapshots, std::span<const LazyTensor> a) {
    const ScanTurn run = scan(turn, std::vector{sum(a[0], 0)}, std::vector{a[0]}, {.snapshots = snapshots});
    return sum(run.carry[0]) + sum(run.stacked[0]);
  };
  for (const std::int64_t snapshots : {0, 1}) {
    expect_passes([&] {
      return value_and_grad([&](std::span<const LazyTensor> a) { return total(snapshots, a); },
                            std::vector{x})
          .second;
    });
  }
  expect_passes([&] {
    return value_and_grad(
               [&](std::span<const LazyTensor> a) {
                 return sum(while_loop([](const LazyTensor& y) { return sum(y) < 20; },
                                       [](const LazyTensor& y) {
                                         return cond(
                                             sum(y) > 6, [](const LazyTensor& z) { return z * 3; },
                                             [](const LazyTensor& z) { return z + 0.5; }, y);
                                       },
                                       a[0], {.snapshots = 2}));
               },
               std::vector{x})
        .second;
  });
  // A row of stored data, whose place is an argument of the plan.
  expect_passes([&] {
    return std::vector{for_loop(
        3, [](const LazyTensor& i, const LazyTensor& y) { return y + astype(i, DType::f32); },
        slice(x, 0, 1, 2))};
  });
}

TEST_P(StepCheck, NamesTheTurnThatIsWrongAndWhatRunsTurnsWrong) {
  Backend& right = shared_backend(GetParam());
  const LazyTensor x = LazyTensor::from_vector<float>({1, 2, 3, 4}, {4}, GetParam());
  const LazyTensor y = for_loop(
      3, [](const LazyTensor&, const LazyTensor& a) { return a + a; }, x);
  const auto plan = plan_for({y});
  // The downloads behind the first three submits are those of turns; the last one's is that of all turns.
  std::string all;
  for (int wrong_submit = 1; wrong_submit < 8; ++wrong_submit) {
    WrongBackend wrong(right, wrong_submit, 1.5);
    std::vector<StoragePtr> storages;
    Bindings bindings;
    for (int i = 0; i < 2; ++i) {
      storages.push_back(right.allocate(4 * sizeof(float)));
      const std::vector<float> values{1, 2, 3, 4};
      right.upload(*storages.back(), 0, values.data(), 4 * sizeof(float));
      bindings.slots.push_back({storages.back().get(), 0});
    }
    const auto executable = prepare_plan(wrong, plan);
    ::testing::internal::CaptureStderr();
    try {
      submit_checked(wrong, *executable, bindings, 7, {});
    } catch (const CheckError& error) {
      all += std::string(error.what()) + "\n";
    }
    (void)::testing::internal::GetCapturedStderr();
  }
  for (int run = 0; run < 3; ++run)
    EXPECT_NE(all.find("in scan, part 0, run " + std::to_string(run) + ", step 0 of 1"), std::string::npos)
        << all;
  EXPECT_NE(all.find("24, but 16 turn by turn"), std::string::npos) << all;
}

TEST_P(StepCheck, ProgramsPass) {
  const Device device = GetParam();
  const auto values = [&](const Shape& shape, double scale) {
    std::vector<float> data(static_cast<std::size_t>(shape.numel()));
    for (std::size_t i = 0; i < data.size(); ++i)
      data[i] = static_cast<float>(scale * std::sin(1.7 * static_cast<double>(i) + 0.3));
    return LazyTensor::from_vector(data, shape, device);
  };
  expect_passes([&] {
    const LazyTensor x = values({6, 33}, 3);
    const LazyTensor w = values({33, 17}, 0.4);
    const LazyTensor ids = LazyTensor::from_vector(std::vector<std::int32_t>{0, 5, 2, 5}, {4}, device);
    const LazyTensor h = relu(matmul(x, w) + 0.5);
    const LazyTensor spd = matmul(w, w.transpose(0, 1)) + eye(33, 33, 0, DType::f32, device) * 40.0;
    return std::vector<LazyTensor>{softmax(h),
                                   sum(exp(x * 0.1) - 1.0, {0}),
                                   argmax(x, 1),
                                   take(h, ids, 0),
                                   matmul(x.astype(DType::bf16), w.astype(DType::bf16)),
                                   cholesky(spd)};
  });
  expect_passes([&] {
    const LazyTensor q = values({2, 5, 8}, 1.5);
    const LazyTensor loss = sum(scaled_dot_product_attention(q, q * 0.5, q + 1.0));
    const LazyTensor ids = LazyTensor::from_vector(std::vector<std::int32_t>{1, 0, 1}, {3}, device);
    const LazyTensor scattered = grad(sum(square(take(q, ids, 0))), {q})[0];
    return std::vector<LazyTensor>{loss, grad(loss, {q})[0], scattered};
  });
}

INSTANTIATE_TEST_SUITE_P(Devices, StepCheck, ::testing::ValuesIn(tested_devices()), device_test_name);

/// One row of queries of width 2, whose results are o, the highest score and the total.
struct PartOfKeys {
  static constexpr float kFill = -1e30F;
  PartOfKeys() {
    const int q = c.input(DType::f32, 2), k = c.input(DType::f32, 4), v = c.input(DType::f32, 4);
    const int o = c.output(DType::f32, 2), highest = c.output(DType::f32, 1), total = c.output(DType::f32, 1);
    const int fill = c.scalar(DType::f32, floating(static_cast<double>(kFill)));
    Step step;
    step.dims = {1, 1, 2, 2, 2};
    step.operands = {view(q, {0, 0, 0, 1, 0}), view(k, {0, 0, 2, 1, 0}),       view(v, {0, 0, 2, 0, 1}),
                     view(o, {0, 0, 0, 0, 1}), view(highest, {0, 0, 0, 0, 0}), view(total, {0, 0, 0, 0, 0})};
    step.work = AttentionStep{.causal = {.fill = fill, .in_parts = true}};
    c.plan().steps = {step};
    expected.scalars = {std::bit_cast<std::uint32_t>(kFill)};
    for (const PlanBuffer& buffer : c.plan().buffers)
      expected.buffers.emplace_back(static_cast<std::size_t>(buffer.bytes));
    set(expected.buffers, kO, {3, 4});
    set(expected.buffers, kHighest, {kFill});
    set(expected.buffers, kTotal, {2});
    got = expected.buffers;
    set(got, kO, {0, 0});
    set(got, kHighest, {-std::numeric_limits<float>::infinity()});
    set(got, kTotal, {0});
  }
  static void set(std::vector<std::vector<std::byte>>& buffers, std::size_t b,
                  const std::vector<float>& values) {
    std::memcpy(buffers[b].data(), values.data(), values.size() * sizeof(float));
  }
  bool accepts() {
    check::accept_left_out_parts(c.plan(), c.plan().steps[0], got, expected);
    return expected.buffers == got;
  }

  static constexpr std::size_t kO = 3, kHighest = 4, kTotal = 5;
  PlanCase c{Device::cpu()};
  PlanMemory expected;
  std::vector<std::vector<std::byte>> got;
};

TEST(LeftOutParts, AreAcceptedWhereNobodySeesThem) { EXPECT_TRUE(PartOfKeys().accepts()); }

TEST(LeftOutParts, AreMistakesWhereAKeyIsSeen) {
  PartOfKeys part;
  PartOfKeys::set(part.expected.buffers, PartOfKeys::kHighest, {-5});
  EXPECT_FALSE(part.accepts());
}

TEST(LeftOutParts, AreMistakesInAStepWithoutParts) {
  PartOfKeys part;
  part.c.plan().steps[0].as<AttentionStep>().causal.in_parts = false;
  EXPECT_FALSE(part.accepts());
}

TEST(DispatchPlan, TakesWhatRunsWithTheFirstStep) {
  PlanCase c(Device::cpu());
  const int x = c.input(DType::f32, 8);
  const int a = c.output(DType::f32, 8);
  const int b = c.output(DType::f32, 8);
  const int d = c.output(DType::f32, 8);
  for (const int to : {a, b})
    c.region(softmax_kernel(DType::f32), {1, 8}, {view(x, {8, 1}), view(to, {8, 1})}, 1);
  c.join();
  c.region(softmax_kernel(DType::f32), {1, 8}, {view(b, {8, 1}), view(d, {8, 1})}, 1);
  const check::DispatchPlan first = check::cut_dispatch(c.plan(), 0);
  EXPECT_EQ(first.plan->steps.size(), 2U);
  EXPECT_EQ(first.buffers, (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(first.plan->output_count, 2);
  const check::DispatchPlan second = check::cut_dispatch(c.plan(), first.end());
  EXPECT_EQ(second.plan->steps.size(), 1U);
  EXPECT_EQ(second.buffers, (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(second.plan->input_count, 1);
}

}  // namespace
}  // namespace caldera::testing
