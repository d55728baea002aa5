// The suite "seeds": the shapes that the project's history names, eager and lazy, forward and with gradient;
// and what a graph costs beyond its arithmetic.
#include <fmt/format.h>

#include <utility>

#include "benches/case.h"
#include "benches/suites/suites.h"
#include "eager/v1.h"
#include "engine/autodiff/autodiff.h"
#include "engine/device/backend.h"
#include "engine/runtime/evaluate.h"
#include "engine/runtime/runtime.h"
#include "ops/core/sum.h"
#include "ops/linalg/matmul.h"
#include "ops/nn/lora.h"
#include "ops/nn/normalization.h"
#include "ops/nn/softmax.h"

namespace caldera::bench {
namespace {

using LazyFunction = std::function<LazyTensor(const std::vector<LazyTensor>&)>;
using EagerFunction = std::function<v1::Tensor(const std::vector<v1::Var>&)>;

/// A function in both APIs, with its operands. Gradients are those with respect to the first `trainable`.
struct Seed {
  std::string name;
  std::string size;
  std::string shape;
  std::vector<Shape> operands;
  std::size_t trainable = 1;
  Shape result;
  double forward_flops = 0;
  double backward_flops = 0;
  LazyFunction lazy;
  EagerFunction eager;
  nlohmann::json peer;
  /// Of the operands and the result. The eager API knows f32 only.
  DType dtype = DType::f32;
};

std::vector<LazyTensor> make_operands(const Seed& seed, Device device) {
  std::vector<LazyTensor> operands;
  for (std::size_t i = 0; i < seed.operands.size(); ++i)
    operands.push_back(random_input(seed.operands[i], i + 1, device, i == 0 ? 1 : 0.1, seed.dtype));
  return operands;
}

/// Reads every operand, writes the result; with gradients also reads the cotangent and writes one gradient a
/// trainable operand. The result itself is then not asked for.
double least_bytes(const Seed& seed, bool with_gradient) {
  double elements = 0;
  for (const Shape& shape : seed.operands) elements += static_cast<double>(shape.numel());
  elements += static_cast<double>(seed.result.numel());
  if (with_gradient)
    for (std::size_t i = 0; i < seed.trainable; ++i)
      elements += static_cast<double>(seed.operands[i].numel());
  return bytes_of(elements, seed.dtype);
}

Work lazy_work(const Seed& seed, bool with_gradient, Device device) {
  const std::vector<LazyTensor> operands = make_operands(seed, device);
  Work work;
  if (!with_gradient) {
    work.build = [=, lazy = seed.lazy] { return std::vector<LazyTensor>{lazy(operands)}; };
    return work;
  }
  const LazyTensor g = random_input(seed.result, 99, device, 1, seed.dtype);
  work.build = [=, lazy = seed.lazy, count = seed.trainable] {
    const LazyTensor loss = sum(lazy(operands) * g);
    std::vector<LazyTensor> outputs = grad(loss, std::span(operands.data(), count));
    outputs.push_back(loss);
    return outputs;
  };
  return work;
}

Work eager_work(const Seed& seed, bool with_gradient, Device device) {
  std::vector<v1::Var> operands;
  for (const LazyTensor& operand : make_operands(seed, device)) operands.emplace_back(v1::Tensor(operand));
  Work work;
  if (!with_gradient) {
    work.run = [=, eager = seed.eager] { (void)eager(operands); };
    return work;
  }
  const v1::Tensor g(random_input(seed.result, 99, device));
  const std::vector<v1::Var> trainable(operands.begin(),
                                       operands.begin() + static_cast<std::ptrdiff_t>(seed.trainable));
  work.run = [=, eager = seed.eager] {
    (void)v1::value_and_grad([&] { return eager(operands).mul(g).sum(); }, trainable);
  };
  return work;
}

void add_seed(std::vector<Case>& cases, const Seed& seed) {
  for (const bool with_gradient : {false, true}) {
    nlohmann::json peer = seed.peer;
    peer["operands"] = nlohmann::json::array();
    for (const Shape& operand : seed.operands) peer["operands"].push_back(dims_json(operand));
    peer["gradients"] = with_gradient ? seed.trainable : 0;
    peer["dtype"] = name(seed.dtype);
    for (const bool eager : {false, true}) {
      if (eager && seed.dtype != DType::f32) continue;
      Case c;
      c.name = fmt::format("seeds/{}/{}{}/{}{}", seed.name, eager ? "eager" : "lazy",
                           with_gradient ? "+grad" : "", seed.size, type_suffix(seed.dtype));
      c.dtype = seed.dtype;
      c.shape = seed.shape;
      c.bytes = least_bytes(seed, with_gradient);
      c.flops = seed.forward_flops + (with_gradient ? seed.backward_flops : 0);
      c.peer = peer;
      c.make = [=](Device device) {
        return eager ? eager_work(seed, with_gradient, device) : lazy_work(seed, with_gradient, device);
      };
      cases.push_back(std::move(c));
    }
  }
}

/// scale * ((x A) B), and with `base` also x W beside it.
Seed lora_seed(const Shape& leading, std::int64_t features, std::int64_t rank, bool base) {
  constexpr double kScale = 2;
  Seed seed;
  seed.name = base ? "lora" : "lora_delta";
  seed.result = leading;
  seed.result.push_back(features);
  seed.size = fmt::format("{}/r{}", dims_text(seed.result), rank);
  seed.shape = fmt::format("x ({}), {}A ({}x{})", dims_text(seed.result),
                           base ? fmt::format("W ({0}x{0}), ", features) : "", features, rank);
  seed.operands = {seed.result, {features, rank}, {rank, features}};
  seed.trainable = 3;
  if (base) seed.operands.push_back({features, features});
  const double m = static_cast<double>(leading.numel());
  const double f = static_cast<double>(features);
  const double r = static_cast<double>(rank);
  seed.forward_flops = 4 * m * f * r + (base ? 2 * m * f * f : 0);
  // g B^T, (x A)^T g, x^T (g B^T) and (g B^T) A^T; and g W^T.
  seed.backward_flops = 8 * m * f * r + (base ? 2 * m * f * f : 0);
  seed.lazy = [=](const std::vector<LazyTensor>& t) {
    const LazyTensor delta = lora_delta(t[0], t[1], t[2], kScale);
    return base ? matmul(t[0], t[3]) + delta : delta;
  };
  seed.eager = [=](const std::vector<v1::Var>& t) {
    const v1::Tensor delta = t[0].tensor().lora_forward_fused(t[1].tensor(), t[2].tensor(), kScale);
    return base ? t[0].tensor().matmul(t[3].tensor()) + delta : delta;
  };
  seed.peer = {{"op", "lora"}, {"scale", kScale}};
  return seed;
}

Seed row_function(const std::string& name, const Shape& shape, double flops, double gradient_flops) {
  Seed seed;
  seed.name = name;
  seed.size = dims_text(shape);
  seed.shape = fmt::format("x ({})", seed.size);
  seed.operands = {shape};
  seed.result = shape;
  const double n = static_cast<double>(shape.numel());
  seed.forward_flops = flops * n;
  seed.backward_flops = gradient_flops * n;
  seed.peer = {{"op", name}};
  return seed;
}

Seed softmax_seed(const Shape& shape) {
  Seed seed = row_function("softmax", shape, 5, 4);
  seed.lazy = [](const std::vector<LazyTensor>& t) { return softmax(t[0]); };
  seed.eager = [](const std::vector<v1::Var>& t) { return t[0].tensor().softmax_fused(); };
  return seed;
}

Seed rms_norm_seed(const Shape& shape) {
  Seed seed = row_function("rms_norm", shape, 3, 6);
  seed.lazy = [](const std::vector<LazyTensor>& t) { return rms_norm(t[0], kNormEps); };
  seed.eager = [](const std::vector<v1::Var>& t) { return t[0].tensor().rms_norm_fused(kNormEps); };
  return seed;
}

// ---- What graphs cost -----------------------------------------------------------------------------------

constexpr std::int64_t kSmall = 16;

LazyTensor chain_of_additions(const LazyTensor& x, const LazyTensor& y, int length) {
  LazyTensor sum = x;
  for (int i = 0; i < length; ++i) sum = sum + y;
  return sum;
}

Case graph_case(const std::string& what, int length, std::function<Work(Device)> make) {
  Case c;
  c.name = fmt::format("seeds/graph/{}/{}", what, length);
  c.shape = fmt::format("{} additions on {} floats", length, kSmall);
  c.operations = length;
  c.make = std::move(make);
  return c;
}

nlohmann::json addition_peer(int length) {
  const nlohmann::json shape = dims_json({kSmall});
  return {{"op", "add_chain"}, {"operands", {shape, shape}}, {"gradients", 0}, {"length", length}};
}

/// Switches fusion off while it lives.
class WithoutFusion {
 public:
  WithoutFusion() : before_(std::exchange(settings().fusion, false)) {}
  ~WithoutFusion() { settings().fusion = before_; }
  WithoutFusion(const WithoutFusion&) = delete;
  WithoutFusion& operator=(const WithoutFusion&) = delete;

 private:
  bool before_;
};

/// Nodes alone: built and dropped, never evaluated.
Case build_case(int length) {
  return graph_case("build", length, [=](Device device) {
    const LazyTensor x = random_input({kSmall}, 1, device);
    const LazyTensor y = random_input({kSmall}, 2, device);
    Work work;
    work.run = [=] { (void)chain_of_additions(x, y, length); };
    return work;
  });
}

/// From a built graph to a submitted job on a device that computes nothing: the walk, the structural hash,
/// the look-up in the plan cache, the binding of inputs and outputs.
Case hash_case(int length, bool fused) {
  return graph_case(fused ? "hash" : "hash_unfused", length, [=](Device) {
    const LazyTensor x = LazyTensor::zeros({kSmall}, DType::f32, Device::null()).eval();
    const LazyTensor y = LazyTensor::zeros({kSmall}, DType::f32, Device::null()).eval();
    auto graph = std::make_shared<LazyTensor>();
    Work work;
    if (!fused) work.scope = std::make_shared<WithoutFusion>();
    work.before = [=] { *graph = chain_of_additions(x, y, length); };
    work.run = [=] { graph->eval(); };
    return work;
  });
}

/// A plan with memory bound to it, replayed below the runtime: what a device's own part of a replay costs the
/// host. One dispatch an operation.
class BoundPlan {
 public:
  BoundPlan(std::shared_ptr<const Plan> plan, Device device) : plan_(std::move(plan)), device_(device) {
    const auto slots =
        static_cast<std::size_t>(plan_->input_count) + static_cast<std::size_t>(plan_->output_count);
    for (std::size_t i = 0; i < slots; ++i) {
      storages_.push_back(backend(device).allocate(static_cast<std::size_t>(plan_->buffers[i].bytes)));
      bindings_.slots.push_back({storages_.back().get(), 0});
    }
    bindings_.scalars.assign(plan_->scalars.size() - plan_->constants.size(), 0);
    bindings_.scalars.insert(bindings_.scalars.end(), plan_->constants.begin(), plan_->constants.end());
  }
  ~BoundPlan() { wait(); }
  BoundPlan(const BoundPlan&) = delete;
  BoundPlan& operator=(const BoundPlan&) = delete;

  void prepare() { executable_ = backend(device_).prepare(plan_); }
  void submit() { ticket_ = backend(device_).submit(*executable_, bindings_); }
  void wait() { backend(device_).wait(ticket_); }
  void drop() {
    wait();
    executable_.reset();
  }

 private:
  std::shared_ptr<const Plan> plan_;
  Device device_;
  std::vector<StoragePtr> storages_;
  Bindings bindings_;
  std::unique_ptr<Executable> executable_;
  Ticket ticket_ = 0;
};

/// The submit alone of a plan that has run before; the device's work is waited for outside.
Case submit_case(int length) {
  Case c = graph_case("submit", length, [=](Device device) {
    const WithoutFusion scope;
    const LazyTensor x = random_input({kSmall}, 1, device);
    const LazyTensor sum = chain_of_additions(x, random_input({kSmall}, 2, device), length);
    auto plan = std::make_shared<BoundPlan>(plan_for({sum}), device);
    plan->prepare();
    plan->submit();
    Work work;
    work.before = [=] { plan->wait(); };
    work.run = [=] { plan->submit(); };
    return work;
  });
  c.bound_us = 60;
  return c;
}

/// A plan of dispatches without a hazard among them, prepared and submitted for the first time.
Case record_case(int length) {
  Case c = graph_case("record", length, [=](Device device) {
    const WithoutFusion scope;
    const LazyTensor x = random_input({kSmall}, 1, device);
    std::vector<LazyTensor> sums;
    sums.reserve(static_cast<std::size_t>(length));
    for (int i = 0; i < length; ++i) sums.push_back(x + static_cast<double>(i));
    auto plan = std::make_shared<BoundPlan>(plan_for(sums), device);
    Work work;
    work.before = [=] { plan->drop(); };
    work.run = [=] {
      plan->prepare();
      plan->submit();
    };
    return work;
  });
  constexpr double kMicrosecondsEach = 2;
  c.bound_us = kMicrosecondsEach * length;
  return c;
}

/// Built, looked up, replayed, waited for.
Case replay_case(int length, bool fused, double aim = 0) {
  Case c = graph_case(fused ? "replay" : "replay_unfused", length, [=](Device device) {
    const LazyTensor x = random_input({kSmall}, 1, device);
    const LazyTensor y = random_input({kSmall}, 2, device);
    Work work;
    if (!fused) work.scope = std::make_shared<WithoutFusion>();
    work.build = [=] { return std::vector<LazyTensor>{chain_of_additions(x, y, length)}; };
    return work;
  });
  c.bytes = f32_bytes(3 * kSmall);
  c.flops = static_cast<double>(kSmall) * length;
  c.peer = addition_peer(length);
  c.aim_ratio = aim;
  return c;
}

Case eager_add_case(int length) {
  Case c = graph_case("eager", length, [=](Device device) {
    const v1::Tensor x(random_input({kSmall}, 1, device));
    const v1::Tensor y(random_input({kSmall}, 2, device));
    Work work;
    work.run = [=] {
      v1::Tensor sum = x;
      for (int i = 0; i < length; ++i) sum = sum + y;
    };
    return work;
  });
  c.bytes = f32_bytes(3 * kSmall);
  c.flops = static_cast<double>(kSmall) * length;
  c.peer = addition_peer(length);
  return c;
}

}  // namespace

std::vector<Case> seeds_suite() {
  std::vector<Case> cases;
  add_seed(cases, lora_seed({1, 128}, 512, 8, false));
  add_seed(cases, lora_seed({1, 128}, 512, 8, true));
  for (const std::int64_t features : {512, 1024, 2048}) add_seed(cases, lora_seed({1, 1}, features, 8, true));
  Seed training_shape = lora_seed({32}, 1024, 16, true);
  add_seed(cases, training_shape);
  for (const DType type : kHalfTypes) {
    training_shape.dtype = type;
    add_seed(cases, training_shape);
  }
  const std::vector<Shape> rows{{1, 128, 1024}, {4, 16, 1024}, {1, 1024}, {32, 1024}, {1024, 1024}};
  for (const Shape& shape : rows) add_seed(cases, softmax_seed(shape));
  for (const Shape& shape : rows) add_seed(cases, rms_norm_seed(shape));
  cases.push_back(build_case(1000));
  cases.push_back(hash_case(1000, true));
  cases.push_back(hash_case(500, false));
  cases.push_back(submit_case(500));
  for (const int length : {1000, 10000}) cases.push_back(record_case(length));
  cases.push_back(replay_case(1, true, 0.8));
  for (const int length : {8, 32}) cases.push_back(replay_case(length, true));
  cases.push_back(replay_case(1000, true, 0.15));
  cases.push_back(replay_case(500, false));
  cases.push_back(replay_case(1000, false, 0.5));
  cases.push_back(eager_add_case(1));
  return cases;
}

}  // namespace caldera::bench
