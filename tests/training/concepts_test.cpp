// Concepts: what has what they ask for, and what lacks it; and the templates that use them.
#include <gtest/gtest.h>

#include "engine/caldera.h"
#include "engine/typed/typed_modules.h"
#include "lm/nn/layers/linear.h"
#include "tests/support/temp_folder.h"
#include "training/loop/run_episodes.h"
#include "training/loop/train_step.h"
#include "training/optim/registry.h"

namespace caldera {
namespace {

struct Nothing {};
struct Scale {
  LazyTensor factor = LazyTensor::full({1}, 0.5, DType::f32, Device::cpu());
  LazyTensor operator()(const LazyTensor& x) const { return x * factor; }
  std::vector<Parameter> parameters() { return {{"factor", &factor}}; }
};
/// Counts to three. It has no base.
struct CountsToThree {
  rl::Box seen{0.0, 3.0, 1};
  rl::Discrete ways{2};
  double at = 0;
  const rl::Space& observation_space() const { return seen; }
  const rl::Space& action_space() const { return ways; }
  void reset(rl::Random&, std::span<double> observation) { observation[0] = at = 0; }
  rl::StepResult step(std::span<const double> action, std::span<double> observation) {
    observation[0] = at += action[0];
    return {action[0], at == 3, false};
  }
};
struct AlwaysOn {
  std::vector<double> act(std::span<const double> observations) const {
    return std::vector<double>(observations.size(), 1.0);
  }
};
const auto square_loss = [](const LazyTensor& y, const LazyTensor& t) { return mean(square(y - t)); };
using SquareLoss = decltype(square_loss);

static_assert(concepts::Parameterized<Linear> && concepts::Parameterized<typed_nn::Linear<2, 3>>);
static_assert(concepts::Module<Linear> && concepts::Module<Scale> && !concepts::Module<Nothing>);
static_assert(!concepts::Parameterized<Nothing> && !concepts::Parameterized<SquareLoss>);
static_assert(concepts::LossFunction<SquareLoss> && !concepts::LossFunction<Scale>);
static_assert(concepts::Optimizer<Optimizer> && !concepts::Optimizer<Linear>);
static_assert(concepts::Trainable<Scale, SquareLoss, Optimizer>);
static_assert(!concepts::Trainable<Scale, Scale, Optimizer> &&
              !concepts::Trainable<Nothing, SquareLoss, Optimizer>);
static_assert(concepts::Differentiable<UnaryFunction> && !concepts::Differentiable<SquareLoss>);
static_assert(concepts::Serializable<rl::Policy> && !concepts::Serializable<Linear>);
static_assert(concepts::Environment<CountsToThree> && concepts::Environment<rl::Environment> &&
              !concepts::Environment<Nothing>);
static_assert(concepts::Policy<rl::Policy> && concepts::Policy<AlwaysOn> && !concepts::Policy<CountsToThree>);
static_assert(concepts::Composable<Scale, LazyTensor> && !concepts::Composable<Scale, std::string>);

TEST(Concepts, ATrainingStepTakesWhatHasThem) {
  Scale scale;
  const auto optimizer = make_optimizer(scale.parameters(), {.name = "sgd", .learning_rate = 0.1});
  const LazyTensor x = LazyTensor::from_vector<float>({1, 2}, {2}, Device::cpu());
  // d/df of ((f - 3)^2 + (2 f - 6)^2) / 2 is 5 (f - 3).
  EXPECT_FLOAT_EQ(train_step(scale, square_loss, *optimizer, x, x * 3.0).item(), (2.5F * 2.5F + 25) / 2);
  EXPECT_FLOAT_EQ(scale.factor.item(), 0.5F + 0.1F * 5 * 2.5F);
  const auto both = compose(scale, [](const LazyTensor& y) { return sum(y); });
  EXPECT_FLOAT_EQ(both(x).item(), 1.75F * 3);

  const testing::TempFolder folder;
  save_parameters(scale, folder.path() / "scale");
  Scale other;
  load_parameters(other, folder.path() / "scale");
  EXPECT_EQ(other.factor.item(), scale.factor.item());
  other.factor = LazyTensor::zeros({2});
  EXPECT_THROW(load_parameters(other, folder.path() / "scale"), FileError);
}

TEST(Concepts, EpisodesTakeWhatHasThem) {
  const auto counters = rl::vector_of(CountsToThree(), 3, 1);
  const rl::AgentEvaluation result = rl::run_episodes(AlwaysOn(), *counters, 7);
  EXPECT_EQ(result.returns, std::vector<double>(7, 3.0));
}

}  // namespace
}  // namespace caldera
