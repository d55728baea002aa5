// Replay of plans: new inputs, many in flight, several plans in turn, executables that die early, times.
#include <bit>
#include <chrono>
#include <cmath>
#include <string>

#include "engine/check/doctor/checks.h"
#include "engine/check/reference/kernel_builder.h"
#include "engine/device/backend.h"

namespace caldera::doctor {
namespace {

using reference::KernelBuilder;
using reference::view;

constexpr const char* kWholeNumbersReplayed = "small whole numbers: exact";

std::uint64_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

/// t = x * s in the arena, then y = t + x, both over n elements.
std::shared_ptr<Plan> two_step_plan(Device device, std::int64_t n) {
  KernelBuilder b("scale");
  const auto value = b.load(DType::f32);
  const auto scale = b.store(b.op(ScalarOp::mul, value, b.scalar(DType::f32))).finish();
  PlanCase made(device);
  const int in = made.input(DType::f32, n);
  const int out = made.output(DType::f32, n);
  const int middle = made.arena(DType::f32, n);
  made.scalar(DType::f32, {1, 0});
  made.region(scale, {n}, {view(in, {1}), view(middle, {1})});
  made.region(reference::one_op_kernel(ScalarOp::add, DType::f32, DType::f32), {n},
              {view(middle, {1}), view(in, {1}), view(out, {1})});
  return std::make_shared<Plan>(made.plan());
}

struct Vectors {
  Backend& backend;
  StoragePtr filled(std::int64_t n, float value) const {
    const std::vector<float> values(static_cast<std::size_t>(n), value);
    StoragePtr storage = backend.allocate(4 * values.size());
    backend.upload(*storage, 0, values.data(), 4 * values.size());
    return storage;
  }
  /// A line if any element is another number.
  void expect(Storage& storage, float value, const std::string& what, std::vector<std::string>& wrong) const {
    std::vector<float> values(storage.bytes() / 4);
    backend.download(storage, 0, values.data(), storage.bytes());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (values[i] == value) continue;
      wrong.push_back(what + ", element " + std::to_string(i) + ": got " + std::to_string(values[i]) +
                      ", want " + std::to_string(value));
      return;
    }
  }
};

/// One plan with many replays in flight, each with other storages and another scalar; `offset` elements into
/// the storages' halves.
std::vector<std::string> many_in_flight(Backend& backend, std::int64_t n, int replays) {
  const Vectors vectors{backend};
  const auto executable = backend.prepare(two_step_plan(backend.info().device, n));
  std::vector<StoragePtr> inputs, outputs;
  Ticket last = 0;
  for (int i = 0; i < replays; ++i) {
    inputs.push_back(vectors.filled(n, static_cast<float>(i + 1)));
    outputs.push_back(vectors.filled(n, -1));
    Bindings bindings;
    bindings.slots = {{inputs.back().get(), 0}, {outputs.back().get(), 0}};
    bindings.scalars = {bits(static_cast<float>(i))};
    last = backend.submit(*executable, bindings);
  }
  backend.wait(last);
  std::vector<std::string> wrong;
  for (int i = 0; i < replays; ++i)
    vectors.expect(*outputs[static_cast<std::size_t>(i)], static_cast<float>((i + 1) * i + (i + 1)),
                   "replay " + std::to_string(i), wrong);
  return wrong;
}

/// Each replay reads what the one before wrote: y becomes x of the next.
std::vector<std::string> chained(Backend& backend) {
  const Vectors vectors{backend};
  const std::int64_t n = 1025;
  const auto executable = backend.prepare(two_step_plan(backend.info().device, n));
  std::vector<StoragePtr> chain{vectors.filled(n, 1)};
  Ticket last = 0;
  for (int i = 0; i < 12; ++i) {
    chain.push_back(vectors.filled(n, -1));
    Bindings bindings;
    bindings.slots = {{chain[chain.size() - 2].get(), 0}, {chain.back().get(), 0}};
    bindings.scalars = {bits(1)};
    last = backend.submit(*executable, bindings);
  }
  backend.wait(last);
  std::vector<std::string> wrong;
  vectors.expect(*chain.back(), 4096, "after 12 doublings", wrong);
  return wrong;
}

/// Two plans of different sizes, one arena; then the executables go while the work may still run.
std::vector<std::string> plans_in_turn(Backend& backend) {
  const Vectors vectors{backend};
  const StoragePtr xs = vectors.filled(100, 1), xl = vectors.filled(100000, 2);
  const StoragePtr ys = vectors.filled(100, -1), yl = vectors.filled(100000, -1);
  Ticket last = 0;
  {
    const auto small = backend.prepare(two_step_plan(backend.info().device, 100));
    const auto large = backend.prepare(two_step_plan(backend.info().device, 100000));
    for (int i = 0; i < 5; ++i) {
      Bindings bindings;
      bindings.scalars = {bits(static_cast<float>(i + 1))};
      bindings.slots = {{xs.get(), 0}, {ys.get(), 0}};
      backend.submit(*small, bindings);
      bindings.slots = {{xl.get(), 0}, {yl.get(), 0}};
      last = backend.submit(*large, bindings);
    }
  }
  backend.wait(last);
  std::vector<std::string> wrong;
  vectors.expect(*ys, 6, "the small plan", wrong);
  vectors.expect(*yl, 12, "the large plan", wrong);
  return wrong;
}

std::vector<std::string> slots_inside_storages(Backend& backend) {
  const auto executable = backend.prepare(two_step_plan(backend.info().device, 4));
  const std::vector<float> x{9, 9, 9, 9, 1, 2, 3, 4, 9};
  std::vector<float> y(12, 7);
  const StoragePtr in = backend.allocate(4 * x.size()), out = backend.allocate(4 * y.size());
  backend.upload(*in, 0, x.data(), 4 * x.size());
  backend.upload(*out, 0, y.data(), 4 * y.size());
  Bindings bindings;
  bindings.slots = {{in.get(), 16}, {out.get(), 16}};
  bindings.scalars = {bits(2)};
  backend.wait(backend.submit(*executable, bindings));
  backend.download(*out, 0, y.data(), 4 * y.size());
  if (y == std::vector<float>{7, 7, 7, 7, 3, 6, 9, 12, 7, 7, 7, 7}) return {};
  return {"an output at byte 16 of its storage is wrong, or what lies around it changed"};
}

/// Products and gathers whose workgroups are handed over one by one: kernels take their number from where
/// the slice begins.
void check_slices(Examination& x) {
  const std::int64_t m = 70, n = 140, k = 9, picked = 33;
  PlanCase plan(x.device());
  const int a = plan.input(DType::f32, m * k, {-3, 3, true}),
            b = plan.input(DType::f32, n * k, {-3, 3, true});
  const int index = plan.input(DType::i32, picked);
  for (std::int64_t i = 0; i < picked; ++i) plan.set(index, i, reference::integer(7 * i % m));
  const int product = plan.output(DType::f32, m * n), rows = plan.output(DType::f32, picked * n);
  plan.contract(DType::f32, {m, n, k}, {view(a, {k, 0, 1}), view(b, {0, k, 1}), view(product, {n, 1, 0})});
  plan.indexed(GatherStep{.axis = {m, n}}, DType::f32, {1, picked, n},
               {view(product, {0, 0, 1}), view(index, {0, 1, 0}), view(rows, {0, n, 1})});
  x.compare("a product and a gather", plan, {{}, kWholeNumbersReplayed});
  x.check("20 in flight with new inputs", kWholeNumbersReplayed,
          [&] { return many_in_flight(x.backend(), 1025, 20); });
  x.check("each reads what the last wrote", kWholeNumbersReplayed, [&] { return chained(x.backend()); });
}

/// Times of steps, where the device has them: one a step, in order, no longer than the replay took.
void check_times(Examination& x) {
  bool none = false;
  x.check("replay: times of steps", "the host's steady clock, 5 ms of slack between two clocks", [&] {
    using Clock = std::chrono::steady_clock;
    constexpr auto kSlack = std::chrono::milliseconds(5);
    Backend& backend = x.backend();
    const Vectors vectors{backend};
    const std::int64_t n = 1 << 20;
    const auto executable = backend.prepare(two_step_plan(x.device(), n));
    const StoragePtr in = vectors.filled(n, 1), out = vectors.filled(n, 0);
    std::vector<StepTime> times;
    Bindings bindings;
    bindings.slots = {{in.get(), 0}, {out.get(), 0}};
    bindings.scalars = {bits(1)};
    bindings.step_times = &times;
    const auto before = Clock::now();
    backend.wait(backend.submit(*executable, bindings));
    const auto after = Clock::now();
    std::vector<std::string> wrong;
    none = times.empty();
    if (none) return wrong;
    if (times.size() != 2) wrong.push_back("2 steps, but " + std::to_string(times.size()) + " times");
    for (const StepTime& time : times) {
      if (time.end < time.begin) wrong.emplace_back("a step ends before it begins");
      if (time.begin + kSlack < before || time.end > after + kSlack)
        wrong.emplace_back("a step runs outside of its replay");
    }
    return wrong;
  });
  if (none) x.skip("replay: times of steps", "the device gives no times (no timestamps on its queue)");
}

}  // namespace

void check_replay(Examination& x) {
  for (std::int64_t n : {1, 1025, 70000})
    x.check("replay: 20 in flight with new inputs, " + std::to_string(n) + " elements", kWholeNumbersReplayed,
            [&] { return many_in_flight(x.backend(), n, 20); });
  x.check("replay: nothing to do", kWholeNumbersReplayed, [&] { return many_in_flight(x.backend(), 0, 3); });
  x.check("replay: each reads what the last wrote", kWholeNumbersReplayed,
          [&] { return chained(x.backend()); });
  x.check("replay: two plans in turn", kWholeNumbersReplayed, [&] { return plans_in_turn(x.backend()); });
  x.check("replay: operands inside of storages", kWholeNumbersReplayed,
          [&] { return slots_inside_storages(x.backend()); });
  check_times(x);
  if (x.gpu())
    x.on_other_backend("replay in slices of one workgroup", "CALDERA_VULKAN_SUBMIT_MS", "0", check_slices);
}

}  // namespace caldera::doctor
