// The base of optimisers: state by name, saved and restored; eval with a loss; steps that are taken back; the
// registry. SGD against a plain double loop.
#include "training/optim/optimizer.h"

#include <initializer_list>
#include <limits>

#include "engine/runtime/runtime.h"
#include "ops/ops.h"
#include "tests/lm/nn/reference.h"
#include "tests/support/devices.h"
#include "training/optim/adamw.h"
#include "training/optim/registry.h"
#include "training/optim/sgd.h"

namespace caldera::testing {
namespace {

/// torch.optim.SGD, single-tensor form.
struct SGDReference {
  SGDOptions options;
  Doubles theta;
  Doubles buffer{};

  void step(const Doubles& grad, double lr) {
    const bool first = buffer.empty();
    if (first) buffer.resize(theta.size());
    for (std::size_t i = 0; i < theta.size(); ++i) {
      double g = grad[i] + options.weight_decay * theta[i];
      if (options.momentum != 0) {
        buffer[i] = first ? g : options.momentum * buffer[i] + (1 - options.dampening) * g;
        g = options.nesterov ? g + options.momentum * buffer[i] : buffer[i];
      }
      theta[i] -= lr * g;
    }
  }
};

class OptimizerTest : public ::testing::TestWithParam<Device> {
 protected:
  void SetUp() override { CALDERA_REQUIRE_DEVICE(GetParam()); }
};

TEST_P(OptimizerTest, SGDFollowsThePlainLoop) {
  const std::vector<SGDOptions> variants{{},
                                         {.weight_decay = 0.1},
                                         {.momentum = 0.9},
                                         {.momentum = 0.9, .dampening = 0.3, .weight_decay = 0.05},
                                         {.momentum = 0.8, .weight_decay = 0.05, .nesterov = true}};
  for (std::size_t variant = 0; variant < variants.size(); ++variant) {
    const SGDOptions& options = variants[variant];
    SGDReference first{options, random_doubles(7 * 3, 1)};
    SGDReference second{options, random_doubles(33, 2)};
    LazyTensor a = make_tensor(first.theta, Shape{7, 3}, DType::f32, GetParam());
    LazyTensor b = make_tensor(second.theta, Shape{33}, DType::f32, GetParam());
    SGD optimizer({{"a", &a, true}, {"b", &b, true}}, options);
    std::uint64_t misses = 0;
    for (std::uint64_t step = 0; step < 12; ++step) {
      const Doubles ga = random_doubles(21, 100 + step);
      const Doubles gb = random_doubles(33, 200 + step, -5, 5);
      const double lr = 0.01 * (1 + 0.1 * static_cast<double>(step));
      first.step(ga, lr);
      second.step(gb, lr);
      optimizer.update(std::vector{make_tensor(ga, Shape{7, 3}, DType::f32, GetParam()),
                                   make_tensor(gb, Shape{33}, DType::f32, GetParam())},
                       lr);
      eval({}, optimizer);
      const std::string what = "variant " + std::to_string(variant);
      expect_close(a, first.theta, 1e-5, what);
      expect_close(b, second.theta, 1e-5, what);
      if (step == 1) misses = plan_cache_stats().misses;
    }
    EXPECT_EQ(plan_cache_stats().misses, misses) << "a step with another learning rate was planned anew";
    EXPECT_EQ(optimizer.step_count(), 12);
    EXPECT_EQ(optimizer.state().tensors.size(), options.momentum == 0 ? 0U : 2U);
    if (options.momentum != 0)
      expect_close(optimizer.state().tensors.at("b.momentum_buffer"), second.buffer, 1e-5);
  }
}

// The closed form for f(x) = x^2 / 2 without momentum: x (1 - lr)^n.
TEST_P(OptimizerTest, SGDDescendsAQuadraticByItsClosedForm) {
  LazyTensor x = make_tensor({3, -2}, Shape{2}, DType::f32, GetParam());
  SGD optimizer({{"x", &x, true}}, {.learning_rate = 0.1});
  for (int i = 0; i < 10; ++i) {
    const LazyTensor loss = sum(square(x)) * 0.5;
    optimizer.update(grad(loss, optimizer.parameters()));
    eval(loss, optimizer);
    EXPECT_NEAR(loss.item<double>(), 13 * 0.5 * std::pow(0.9, 2 * i), 1e-4);
  }
  expect_close(x, {3 * std::pow(0.9, 10), -2 * std::pow(0.9, 10)}, 1e-5);
}

TEST_P(OptimizerTest, EvalIsOnePlanAndLeavesNoGraph) {
  LazyTensor x = make_tensor(random_doubles(5, 1), Shape{5}, DType::f32, GetParam());
  AdamW optimizer({{"x", &x, true}});
  std::uint64_t submits = 0;
  for (int i = 0; i < 4; ++i) {
    const LazyTensor loss = sum(square(x));
    const std::vector<LazyTensor> grads = grad(loss, optimizer.parameters());
    optimizer.update(grads, 0.01);
    submits = backend(GetParam()).counters().submits;
    const LazyTensor norm = sum(grads[0]);
    eval({loss, norm}, optimizer);
    EXPECT_EQ(backend(GetParam()).counters().submits - submits, 1U);
    EXPECT_GT(loss.item<double>(), 0);
  }
}

TEST_P(OptimizerTest, AStepThatIsNotAppliedChangesNothing) {
  for (const std::string& name : optimizer_names()) {
    OptimizerOptions options{.name = name, .learning_rate = 0.1};
    if (name == "sgd") options.more["momentum"] = 0.9;
    LazyTensor x = make_tensor(random_doubles(5, 1), Shape{5}, DType::f32, GetParam());
    const auto optimizer = make_optimizer({{"x", &x, true}}, options);
    const std::vector<LazyTensor> grads{make_tensor(random_doubles(5, 2), Shape{5}, DType::f32, GetParam())};
    optimizer->update(grads);
    eval({}, *optimizer);
    const Doubles before = to_doubles(x);
    const OptimizerState state = optimizer->state();
    const std::vector<LazyTensor> others{make_tensor(random_doubles(5, 3), Shape{5}, DType::f32, GetParam())};
    for (const bool apply : {false, true}) {
      optimizer->update_if(
          equal(LazyTensor::from_vector<float>({apply ? 1.0F : 0.0F}, Shape{}, GetParam()), 1.0), others,
          0.1);
      eval({}, *optimizer);
      if (!apply) optimizer->skip_update();
      EXPECT_EQ(to_doubles(x) == before, !apply) << name;
      EXPECT_EQ(optimizer->step_count(), apply ? 2 : 1);
      for (const auto& [key, tensor] : optimizer->state().tensors)
        EXPECT_EQ(to_doubles(tensor) == to_doubles(state.tensors.at(key)), !apply) << key;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, OptimizerTest, ::testing::ValuesIn(tested_devices()), device_test_name);

TEST(OptimizerStateTest, ARestoredRunOfAnyOptimizerContinuesExactly) {
  for (const std::string& name : optimizer_names()) {
    OptimizerOptions options{.name = name, .learning_rate = 0.01};
    if (name == "sgd") options.more = {{"momentum", 0.9}, {"dampening", 0.2}};
    const auto run = [](Optimizer& optimizer, int from, int to) {
      for (int i = from; i < to; ++i) {
        optimizer.update(
            std::vector{make_tensor(random_doubles(4, to_size(i)), Shape{4}, DType::f32, Device::cpu())});
        eval({}, optimizer);
      }
    };
    LazyTensor x = make_tensor(random_doubles(4, 99), Shape{4}, DType::f32, Device::cpu());
    LazyTensor y = make_tensor(random_doubles(4, 99), Shape{4}, DType::f32, Device::cpu());
    const auto whole = make_optimizer({{"x", &x, true}}, options);
    const auto half = make_optimizer({{"y", &y, true}}, options);
    run(*whole, 0, 6);
    run(*half, 0, 3);
    const auto rest = make_optimizer({{"y", &y, true}}, options);
    rest->restore(half->state());
    EXPECT_EQ(rest->step_count(), 3);
    run(*rest, 3, 6);
    EXPECT_EQ(y.to_vector<float>(), x.to_vector<float>()) << name;
    rest->reset();
    EXPECT_EQ(rest->step_count(), 0);
  }
}

TEST(OptimizerStateTest, AStateThatDoesNotFitIsRefused) {
  LazyTensor x = make_tensor({1, 2}, Shape{2}, DType::f32, Device::cpu());
  LazyTensor y = make_tensor({1, 2, 3}, Shape{3}, DType::f32, Device::cpu());
  AdamW optimizer({{"x", &x, true}});
  const OptimizerState good = optimizer.state();
  EXPECT_EQ(good.tensors.size(), 2U);
  OptimizerState state = good;
  state.step = -1;
  EXPECT_THROW(optimizer.restore(state), ValueError);
  state = good;
  state.tensors.erase("x.exp_avg");
  EXPECT_THROW(optimizer.restore(state), ValueError);
  state = good;
  state.tensors["z.exp_avg"] = x;
  EXPECT_THROW(optimizer.restore(state), ValueError);
  state = good;
  state.tensors["x.exp_avg"] = y;
  EXPECT_THROW(optimizer.restore(state), ShapeError);
  EXPECT_THROW(SGD({{"x", &x, true}}, {.momentum = 0.9}).restore(good), ValueError);
}

/// The message of the E that `action` throws, or what happened instead.
template <class E, class Action>
std::string refusal(Action&& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  } catch (const std::exception& error) {
    return std::string("another exception: ") + error.what();
  }
  return "accepted";
}

/// A parameter and its optimiser; says whether anything of them has changed.
struct Watched {
  LazyTensor x = make_tensor({1, 2}, Shape{2}, DType::f32, Device::cpu());
  LazyTensor grad = make_tensor({0.5, 1}, Shape{2}, DType::f32, Device::cpu());
  AdamW optimizer{{{"w", &x, true}}};

  Watched() {
    optimizer.update({grad});
    eval({}, optimizer);
  }
  std::vector<std::uint64_t> identity() const {
    std::vector<std::uint64_t> ids{static_cast<std::uint64_t>(optimizer.step_count())};
    for (const LazyTensor& tensor : optimizer.outputs()) ids.push_back(tensor.node_id());
    return ids;
  }
  /// Expects `action` to throw an E whose message has all of `parts`, and to change nothing.
  template <class E, class Action>
  void refuses(Action&& action, std::initializer_list<const char*> parts) {
    const std::vector<std::uint64_t> before = identity();
    const std::string message = refusal<E>(action);
    for (const char* part : parts)
      EXPECT_NE(message.find(part), std::string::npos) << message << "\nshould contain: " << part;
    EXPECT_EQ(identity(), before) << message;
  }
};

TEST(OptimizerArgumentsTest, AParameterIsListedOnceUnderANameOfItsOwn) {
  LazyTensor x = make_tensor({1, 2}, Shape{2}, DType::f32, Device::cpu());
  LazyTensor y = make_tensor({1, 2}, Shape{2}, DType::f32, Device::cpu());
  LazyTensor empty;
  const auto message = [](const std::vector<Parameter>& parameters) {
    return refusal<ValueError>([&] { const SGD optimizer(parameters); });
  };
  EXPECT_EQ(message({{"x", &x}, {"y", &y}}), "accepted");
  EXPECT_EQ(message({{"x", &x}, {"x", &y}}),
            "SGD: two parameters are called 'x'; state is saved by name, so give each a name of its own");
  EXPECT_EQ(message({{"x", &x}, {"y", &x}}), "SGD: parameters 'x' and 'y' are the same tensor; list it once");
  EXPECT_EQ(message({{"x", &x}, {"x", &x}}), "SGD: parameters 'x' and 'x' are the same tensor; list it once");
  EXPECT_EQ(message({{"x", &x}, {"n", nullptr}}), "SGD: parameter 'n' has no tensor");
  EXPECT_EQ(message({{"e", &empty}}), "SGD: parameter 'e' has no tensor");
}

TEST(OptimizerArgumentsTest, RatesAreFiniteAndNotNegative) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  Watched watched;
  for (const double rate : {-1.0, kNaN, kInfinity}) {
    watched.refuses<ValueError>([&] { watched.optimizer.update({watched.grad}, rate); },
                                {"AdamW: learning_rate is", "finite"});
    EXPECT_THROW(AdamW({{"w", &watched.x}}, {.learning_rate = rate}), ValueError);
    EXPECT_THROW(SGD({{"w", &watched.x}}, {.learning_rate = rate}), ValueError);
    EXPECT_THROW((SGDOptions{.learning_rate = rate}.validate()), ValueError);
    EXPECT_THROW((AdamWOptions{.learning_rate = rate}.validate()), ValueError);
  }
  for (const double value : {kNaN, kInfinity}) {
    EXPECT_THROW(SGD({{"w", &watched.x}}, {.momentum = 0.9, .dampening = value}), ValueError);
    EXPECT_THROW(SGD({{"w", &watched.x}}, {.momentum = value}), ValueError);
    EXPECT_THROW(SGD({{"w", &watched.x}}, {.weight_decay = value}), ValueError);
    EXPECT_THROW(AdamW({{"w", &watched.x}}, {.eps = value}), ValueError);
    EXPECT_THROW(AdamW({{"w", &watched.x}}, {.weight_decay = value}), ValueError);
  }
}

TEST(OptimizerArgumentsTest, AnEmptyGradientIsRefusedByName) {
  Watched watched;
  watched.refuses<ValueError>([&] { watched.optimizer.update({LazyTensor{}}); },
                              {"AdamW: the gradient of 'w' is empty; pass zeros"});
}

TEST(OptimizerArgumentsTest, GradientsMayStandInBraces) {
  LazyTensor x = make_tensor({1, 2}, Shape{2}, DType::f32, Device::cpu());
  LazyTensor y = make_tensor({3}, Shape{1}, DType::f32, Device::cpu());
  SGD optimizer({{"x", &x}, {"y", &y}}, {.learning_rate = 1});
  const LazyTensor gx = make_tensor({1, 1}, Shape{2}, DType::f32, Device::cpu());
  const LazyTensor gy = make_tensor({1}, Shape{1}, DType::f32, Device::cpu());
  optimizer.update({gx, gy});
  optimizer.update({gx, gy}, 0.5);
  optimizer.update_if(equal(gy[0], 1.0), {gx, gy}, 0.25);
  eval({}, optimizer);
  expect_close(x, {-0.75, 0.25}, 1e-6);
  expect_close(y, {1.25}, 1e-6);
}

TEST(OptimizerArgumentsTest, AConditionIsABooleanScalar) {
  Watched watched;
  const auto refuses = [&]<class E>(const LazyTensor& apply, const char* part) {
    watched.refuses<E>([&] { watched.optimizer.update_if(apply, {watched.grad}, 0.1); },
                       {"AdamW: update_if: the condition", part});
  };
  refuses.operator()<ValueError>({}, "is empty");
  refuses.operator()<DTypeError>(1.0, "float32");
  refuses.operator()<DTypeError>(true, "int32");
  refuses.operator()<ShapeError>(equal(watched.grad, 1.0), "(2,)");
  refuses.operator()<ShapeError>(LazyTensor::ones(Shape{1}, DType::boolean, Device::cpu()), "(1,)");
  watched.refuses<ShapeError>(
      [&] {
        watched.optimizer.update_if(LazyTensor::ones(Shape{}, DType::boolean, Device::cpu()),
                                    {watched.grad[0]}, 0.1);
      },
      {"'w'"});
}

TEST(OptimizerArgumentsTest, NoUpdateIsTakenBackBeforeTheFirst) {
  Watched watched;
  watched.optimizer.reset();
  watched.refuses<ValueError>([&] { watched.optimizer.skip_update(); }, {"AdamW: skip_update"});
  watched.optimizer.update({watched.grad});
  watched.optimizer.skip_update();
  EXPECT_EQ(watched.optimizer.step_count(), 0);
}

TEST(OptimizerStateTest, TensorsUnlikeThoseOfStateAreRefusedByName) {
  Watched watched;
  const OptimizerState good = watched.optimizer.state();
  const auto with = [&](const LazyTensor& tensor) {
    OptimizerState state = good;
    state.tensors["w.exp_avg_sq"] = tensor;
    return state;
  };
  const LazyTensor saved = good.tensors.at("w.exp_avg_sq");
  for (const DType dtype : {DType::i32, DType::f16, DType::bf16, DType::f64})
    watched.refuses<DTypeError>([&] { watched.optimizer.restore(with(saved.to(dtype))); },
                                {"AdamW: w.exp_avg_sq is", "float32"});
  watched.refuses<ValueError>([&] { watched.optimizer.restore(with({})); }, {"w.exp_avg_sq", "empty"});
  watched.refuses<ShapeError>([&] { watched.optimizer.restore(with(saved[0])); }, {"w.exp_avg_sq"});
  for (const std::int64_t step :
       {std::int64_t{-1}, (std::int64_t{1} << 53) + 1, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    OptimizerState state = good;
    state.step = step;
    watched.refuses<ValueError>([&] { watched.optimizer.restore(state); },
                                {"AdamW: cannot continue", "step"});
  }
  for (const Device device : tested_devices()) {
    if (device == Device::cpu()) continue;
    watched.refuses<DeviceError>([&] { watched.optimizer.restore(with(saved.to(device))); },
                                 {"w.exp_avg_sq", device.to_string().c_str()});
  }
  watched.optimizer.restore(good);

  // The state of a 16-bit parameter is f32, that of f64 is f64.
  for (const auto& [dtype, kept] : {std::pair{DType::bf16, DType::f32}, std::pair{DType::f64, DType::f64}}) {
    LazyTensor y = watched.x.to(dtype);
    SGD optimizer({{"y", &y}}, {.momentum = 0.9});
    EXPECT_EQ(optimizer.state().tensors.at("y.momentum_buffer").dtype(), kept);
    EXPECT_NO_THROW(optimizer.restore(optimizer.state()));
  }
}

TEST(OptimizerRegistryTest, NamesAndOptionsAreChecked) {
  LazyTensor x = make_tensor({1, 2}, Shape{2}, DType::f32, Device::cpu());
  const std::vector<Parameter> parameters{{"x", &x, true}};
  const auto message_of = [&](const OptimizerOptions& options) {
    try {
      make_optimizer(parameters, options);
    } catch (const ValueError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const std::string unknown = message_of({.name = "no-such-optimizer"});
  for (const std::string& name : optimizer_names()) {
    EXPECT_NE(unknown.find(name), std::string::npos) << unknown;
    EXPECT_EQ(make_optimizer(parameters, {.name = name, .learning_rate = 0.25})->learning_rate(), 0.25);
  }
  EXPECT_NE(message_of({.more = {{"momentum", 0.9}}}).find("beta1"), std::string::npos);
  EXPECT_NE(message_of({.learning_rate = -1}).find("learning_rate"), std::string::npos);
  EXPECT_NE(message_of({.weight_decay = -1}).find("weight_decay"), std::string::npos);
  EXPECT_NE(message_of({.name = "sgd", .more = {{"nesterov", 1}}}).find("nesterov"), std::string::npos);
  EXPECT_THROW(make_optimizer({}, {}), ValueError);
  const auto sgd = make_optimizer(parameters, {.name = "sgd", .learning_rate = 0.5});
  EXPECT_EQ(dynamic_cast<SGD&>(*sgd).options().weight_decay, 0);
  EXPECT_EQ(sgd->learning_rate(), 0.5);
  EXPECT_EQ(make_optimizer(parameters, {.name = "sgd"})->learning_rate(), SGDOptions{}.learning_rate);
  const auto adamw = make_optimizer(parameters, {.more = {{"beta2", 0.95}}});
  EXPECT_EQ(dynamic_cast<AdamW&>(*adamw).options().beta2, 0.95);
  EXPECT_EQ(dynamic_cast<AdamW&>(*adamw).options().weight_decay, 0.01);
  EXPECT_EQ(adamw->learning_rate(), AdamWOptions{}.learning_rate);
}

}  // namespace
}  // namespace caldera::testing
