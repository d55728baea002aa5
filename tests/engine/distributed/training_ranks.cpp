#include "tests/engine/distributed/training_ranks.h"

#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "engine/caldera.h"
#include "tests/lm/nn/reference.h"
#include "tests/training/objective_setup.h"
#include "training/objectives/next_token.h"
#include "training/trainer/trainer.h"

namespace caldera::testing {
namespace {

using distributed::Group;
using Gradient = std::vector<double>;  // of all that is trained, one behind the other

void require(bool holds, const std::string& what) {
  if (!holds) throw Error("wrong: " + what);
}

/// A tiny model in f64 with an adapter, always the same.
std::unique_ptr<Llama> model_for_weights() {
  const ModelConfig config =
      tiny_llama({.layers = 1, .heads = 2, .kv_heads = 1, .positions = 128, .initializer_range = 0.1});
  auto model = std::make_unique<Llama>(config, Device::cpu(), /*seed=*/5);
  apply_lora(*model, {.rank = 2, .alpha = 4}, {"all-linear"}, 1);
  std::uint64_t seed = 70;
  model->visit_projections([&](const std::string&, const std::string&, std::unique_ptr<Projection>& slot) {
    if (auto* lora = dynamic_cast<LoRALinear*>(slot.get()))
      lora->lora_b() = random_normal(lora->lora_b().shape(), seed++, DType::f32, Device::cpu()) * 0.3;
  });
  compute_in_f64(*model);
  return model;
}

/// Texts of so many tokens, the one that ends it among them.
TokenDataset texts_of(const std::vector<std::int64_t>& tokens) {
  ExampleSet set;
  for (const std::int64_t n : tokens) {
    std::string text;
    for (std::int64_t i = 1; i < n; ++i) text += static_cast<char>('a' + (i * i + 3 * n) % 26);
    set.examples.push_back({.prompt = {}, .text = std::move(text)});
  }
  return TokenDataset(set, ByteTokenizer(), {.seq_len = 128});
}

Gradient values_of(CausalLM& model) {
  Gradient all;
  for (const Parameter& p : model.trainable_parameters()) {
    const std::vector<double> values = astype(*p.tensor, DType::f64).to_vector<double>();
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

/// The gradient that a training step has: what plain descent takes away, over its rate.
Gradient gradient_of_step(const TokenDataset& data, const TrainOptions& shape) {
  constexpr double kRate = 0x1p16;  // so large that the parameters do not round it
  const auto model = model_for_weights();
  const Gradient before = values_of(*model);
  TrainOptions options = shape;
  options.iterations = 1;
  options.optimizer = {.name = "sgd", .learning_rate = kRate, .weight_decay = 0};
  options.max_grad_norm = 0;
  train(ObjectiveModels(*model), NextToken(), data, nullptr, options);
  Gradient moved = values_of(*model);
  for (std::size_t i = 0; i < moved.size(); ++i) moved[i] = (before[i] - moved[i]) / kRate;
  return moved;
}

double distance(const Gradient& a, const Gradient& b) {
  double difference = 0, all = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference += std::pow(a[i] - b[i], 2);
    all += std::pow(b[i], 2);
  }
  return std::sqrt(difference / all);
}

/// The loss of all tokens by plain loops in double, with parameters moved along `direction`.
double loss_along(const TokenDataset& data, const Gradient& direction, double step) {
  const auto model = model_for_weights();
  std::size_t at = 0;
  for (const Parameter& p : model->trainable_parameters()) {
    const auto n = static_cast<std::size_t>(p.tensor->numel());
    const std::vector<double> part(direction.begin() + static_cast<std::ptrdiff_t>(at),
                                   direction.begin() + static_cast<std::ptrdiff_t>(at + n));
    *p.tensor = *p.tensor + LazyTensor::from_vector(part, p.tensor->shape(), Device::cpu()) * step;
    at += n;
  }
  const Batch batch = whole(data);
  double sum = 0, count = 0;
  for (const double log_p : row_log_p(*model, batch)) sum -= log_p;
  for (const double length : row_lengths_of(batch)) count += length;
  return sum / count;
}

}  // namespace

void check_token_weights(const Group& group) {
  require(group.size() == 3, "this case is of three ranks");
  const TokenDataset data = texts_of({1, 10, 100});
  const std::vector<double> lengths = row_lengths_of(whole(data));
  require(lengths == std::vector<double>{1, 10, 100},
          fmt::format("texts of {}, {}, {} tokens", lengths[0], lengths[1], lengths[2]));
  TrainOptions shared{.batch_size = 1, .grad_accumulation = 3};
  const Gradient accumulated = gradient_of_step(data, shared);
  shared.ranks = std::make_shared<distributed::Communicator>(group.ranks());
  const Gradient of_ranks = gradient_of_step(data, shared);
  const Gradient of_one = gradient_of_step(data, {.batch_size = 3});
  require(distance(of_ranks, of_one) <= 1e-7, fmt::format("off by {}", distance(of_ranks, of_one)));
  require(of_ranks == accumulated, "three ranks have other bits than three batches of one process");

  // By central differences of the mean over tokens, along the gradient itself.
  double square = 0;
  for (const double g : of_ranks) square += g * g;
  const double step = 1e-4 / std::sqrt(square);
  const double slope = (loss_along(data, of_ranks, step) - loss_along(data, of_ranks, -step)) / (2 * step);
  require(std::abs(slope / square - 1) < 1e-5, fmt::format("slope {} where |g|^2 is {}", slope, square));

  // What averages of the ranks' means are: each text counts alike.
  Gradient mean(of_one.size(), 0.0);
  for (const std::int64_t tokens : {1, 10, 100}) {
    const Gradient own = gradient_of_step(texts_of({tokens}), {.batch_size = 1});
    for (std::size_t i = 0; i < mean.size(); ++i) mean[i] += own[i] / 3;
  }
  require(distance(mean, of_one) > 0.1, fmt::format("means differ by {} only", distance(mean, of_one)));
  if (group.rank() == 0)
    fmt::print("three ranks: {:.1e} from one process; a mean of means: {:.1e}\n", distance(of_ranks, of_one),
               distance(mean, of_one));
}

}  // namespace caldera::testing
