#include "tests/support/fault_workload.h"

#include <cmath>
#include <cstdint>
#include <random>
#include <utility>

#include "engine/caldera.h"
#include "engine/explain/records.h"
#include "engine/runtime/profiler.h"
#include "lm/nn/attention/attention.h"

namespace caldera::testing {
namespace {

constexpr std::int64_t kVocabulary = 40;
constexpr std::int64_t kLength = 12;
constexpr std::int64_t kHeads = 2;
constexpr std::int64_t kHeadSize = 8;
constexpr std::int64_t kWidth = kHeads * kHeadSize;
constexpr std::int64_t kRank = 3;
constexpr int kSteps = 2;

class Workload {
 public:
  explicit Workload(Device device) : device_(device) {}

  WorkloadResults run() {
    train();
    pipeline();
    measured();
    large();
    return std::move(results_);
  }

 private:
  LazyTensor upload(const Shape& shape) {
    std::int64_t count = 1;
    for (std::int64_t extent : shape) count *= extent;
    std::uniform_real_distribution<float> uniform(-0.5F, 0.5F);
    std::vector<float> values(static_cast<std::size_t>(count));
    for (float& value : values) value = uniform(random_);
    return LazyTensor::from_vector(values, shape, device_);
  }

  LazyTensor tokens() {
    std::vector<std::int32_t> ids(static_cast<std::size_t>(kLength));
    for (std::int32_t& id : ids) id = static_cast<std::int32_t>(random_() % kVocabulary);
    return LazyTensor::from_vector(ids, {kLength}, device_);
  }

  void read(const LazyTensor& tensor) { results_.push_back(tensor.to_vector<float>()); }

  LazyTensor heads(const LazyTensor& x) const {
    return permute_dims(reshape(x, Shape{1, kLength, kHeads, kHeadSize}), {0, 2, 1, 3});
  }

  LazyTensor loss(const std::vector<LazyTensor>& p, const LazyTensor& frozen, const LazyTensor& ids,
                  const LazyTensor& targets) const {
    const LazyTensor x = take(p[0], ids);
    const LazyTensor q = matmul(x, frozen) + lora_delta(x, p[1], p[2], 2.0);
    const LazyTensor mask = causal_mask(kLength, kLength, 0, device_);
    const LazyTensor mixed =
        scaled_dot_product_attention(heads(q), heads(x), heads(x), {.mask = mask, .enable_gqa = true});
    const LazyTensor h = x + reshape(permute_dims(mixed, {0, 2, 1, 3}), Shape{kLength, kWidth});
    return mean_cross_entropy(matmul(rms_norm(h, 1e-5), transpose(p[0])), targets);
  }

  void train() {
    const LazyTensor frozen = upload({kWidth, kWidth}), ids = tokens(), targets = tokens();
    std::vector<LazyTensor> parameters{upload({kVocabulary, kWidth}), upload({kWidth, kRank}),
                                       upload({kRank, kWidth})};
    std::vector<LazyTensor> m, v;
    for (const LazyTensor& p : parameters) {
      m.push_back(zeros_like(p));
      v.push_back(zeros_like(p));
    }
    for (int step = 1; step <= kSteps; ++step) {
      const LazyTensor value = loss(parameters, frozen, ids, targets);
      const std::vector<LazyTensor> grads = grad(value, parameters);
      std::vector<LazyTensor> outputs{value};
      for (std::size_t i = 0; i < parameters.size(); ++i) {
        const AdamWUpdate update =
            adamw_update(parameters[i], grads[i], m[i], v[i], {.learning_rate = 0.05, .step = step});
        parameters[i] = update.param;
        m[i] = update.m;
        v[i] = update.v;
        outputs.insert(outputs.end(), {update.param, update.m, update.v});
      }
      eval(outputs);
      read(value);
    }
    for (const LazyTensor& p : parameters) read(p);
  }

  /// Plans in flight together, the second on the result of the first.
  void pipeline() {
    const LazyTensor x = upload({33, 7});
    const LazyTensor first = softmax(x * 3.0);
    const EvalFuture one = first.eval_async();
    const LazyTensor second = matmul(transpose(first), x);
    const EvalFuture two = second.eval_async();
    one.get();
    two.get();
    read(second);
  }

  /// A replay that is timed step by step.
  void measured() {
    const Profiler profiler;
    const LazyTensor x = upload({21, 5});
    read(sum(exp(x) * x, {1}));
  }

  /// Tensors that need memory of their own, and an upload in several pieces.
  void large() {
    const LazyTensor x = upload({5, std::int64_t{1} << 18});
    const LazyTensor y = x * 2.0 + 1.0;
    eval({y});
    read(sum(y, {1}));
  }

  Device device_;
  std::mt19937 random_{17};
  WorkloadResults results_;
};

}  // namespace

WorkloadResults run_fault_workload(Device device) { return Workload(device).run(); }

}  // namespace caldera::testing
