// Random numbers: Philox4x32-10, the same stream on every device.
#include <cmath>
#include <string>

#include "engine/check/doctor/checks.h"
#include "engine/check/reference/kernel_builder.h"

namespace caldera::doctor {
namespace {

using reference::integer;
using reference::KernelBuilder;
using reference::view;

std::shared_ptr<const Kernel> random_kernel(ScalarOp op, DType type) {
  KernelBuilder b("random");
  const auto seed = b.scalar(DType::i64);
  return b.store(b.philox(op, type, seed, b.index())).finish();
}

/// Random123, kat_vectors, philox4x32 10: counter 0 0 0 0, key 0 0.
void check_known_answers(Examination& x) {
  const std::string title = "random numbers: known answers";
  x.check(title, "Random123, kat_vectors: exact", [&] {
    constexpr double kWords[] = {0x6627e8d5p0, 0xe169c58dp0, 0xbc57ac4cp0, 0x9b00dbd8p0};
    PlanCase plan(x.device());
    const int out = plan.output(DType::f32, 4);
    plan.scalar(DType::i64, integer(0));
    plan.region(random_kernel(ScalarOp::philox_uniform, DType::f32), {4}, {view(-1, {1}), view(out, {1})});
    const reference::DeviceRun run = plan.run_on(x.backend());
    std::vector<std::string> wrong;
    for (std::int64_t i = 0; i < 4; ++i) {
      const double got = reference::read_number(run.outputs.at(0), DType::f32, i).f;
      // f32 holds the upper 24 bits.
      const double want = std::floor(kWords[i] / 256) * 0x1p-24;
      if (got != want)
        wrong.push_back("word " + std::to_string(i) + ": got " + std::to_string(got) + ", want " +
                        std::to_string(want));
    }
    return wrong;
  });
}

}  // namespace

void check_random(Examination& x) {
  if (!x.supports(DType::i64)) return x.skip("random numbers", "the device lacks i64, which seeds are");
  check_known_answers(x);
  for (ScalarOp op : {ScalarOp::philox_uniform, ScalarOp::philox_normal}) {
    for (DType type : {DType::f32, DType::f64}) {
      if (!x.supports(type)) continue;
      const auto kernel = random_kernel(op, type);
      const bool exact = op == ScalarOp::philox_uniform;
      Allowed allowed{{}, "integers: exact"};
      if (!exact && x.gpu()) allowed = {{1e-4, 1e-4}, "log, sin and cos of f32 on GPUs"};
      if (!exact && !x.gpu()) allowed = {{2e-7, 0}, "2 ulp of f32"};
      for (const std::int64_t seed : {std::int64_t{0}, std::int64_t{0x123456789abcdef}, std::int64_t{-5}}) {
        PlanCase plan(x.device());
        const int out = plan.output(type, 5000);
        plan.scalar(DType::i64, integer(seed));
        plan.region(kernel, {5000}, {view(-1, {1}), view(out, {1})});
        plan.region(kernel, {33}, {view(-1, {7}, 1000000007), view(out, {1}, 100)});
        x.compare(
            std::string(info(op).name) + " of " + std::string(name(type)) + ", seed " + std::to_string(seed),
            plan, allowed);
      }
    }
  }
}

}  // namespace caldera::doctor
