// Names what the library's templates ask of types: <caldera/concepts.h>. A call that does not compile names
// the concept that fails, and its note the expression that is missing. In a namespace of their own, as
// classes have some of the names.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <ranges>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "engine/graph/lazy_tensor.h"
#include "engine/testing/gradcheck.h"
#include "training/rl/envs/environment.h"
#include "training/rl/spaces/space.h"

namespace caldera::concepts {

/// A function that grad, jvp and gradcheck take: of one tensor or a list of them, to one or a list.
template <class F>
concept Differentiable = testing::FunctionOfOneTensor<F> || testing::FunctionOfTensors<F>;

/// One of the parameters of a module: its name, and a pointer to its tensor in the module.
template <class P>
concept NamedParameter = requires(const P& p) {
  { p.name } -> std::convertible_to<std::string>;
  { p.tensor } -> std::convertible_to<LazyTensor*>;
};

/// Lists its parameters: caldera::Module, the modules of <caldera/typed.h>, or a class of one's own.
template <class M>
concept Parameterized = requires(M& m) {
  { m.parameters() } -> std::ranges::range;
  requires NamedParameter<std::ranges::range_value_t<decltype(m.parameters())>>;
};

/// Is saved to a file by itself.
template <class S>
concept Serializable = requires(const S& s, const std::filesystem::path& path) {
  s.save(path);
};

/// May stand behind what gives an X: compose() joins such functions.
template <class F, class X>
concept Composable = requires(F& f, const X& x) {
  f(x);
};

/// A map of one tensor that has parameters.
template <class M>
concept Module = Parameterized<M> && requires(M& m, const LazyTensor& x) {
  { m(x) } -> std::convertible_to<LazyTensor>;
};

/// Makes a scalar of a prediction and a target.
template <class L>
concept LossFunction = requires(const L& loss, const LazyTensor& prediction, const LazyTensor& target) {
  { loss(prediction, target) } -> std::convertible_to<LazyTensor>;
};

/// Updates parameters by their gradients, lazily: caldera::Optimizer, or a class of one's own.
template <class O>
concept Optimizer = requires(O& o, std::span<const LazyTensor> grads) {
  { o.inputs() } -> std::convertible_to<std::vector<LazyTensor>>;
  o.update(grads);
  { o.outputs() } -> std::convertible_to<std::vector<LazyTensor>>;
};

/// A module that this optimiser and this loss train: train_step() takes the three.
template <class M, class L, class O>
concept Trainable = Module<M> && LossFunction<L> && Optimizer<O>;

/// Simulates what agents act in, with or without the base rl::Environment.
template <class E>
concept Environment = requires(E& e, rl::Random& random, std::span<double> observation,
                               std::span<const double> action) {
  { e.observation_space() } -> std::convertible_to<const rl::Space&>;
  { e.action_space() } -> std::convertible_to<const rl::Space&>;
  e.reset(random, observation);
  { e.step(action, observation) } -> std::convertible_to<rl::StepResult>;
};

/// Chooses actions for rows of observations.
template <class P>
concept Policy = requires(const P& p, std::span<const double> observations) {
  { p.act(observations) } -> std::convertible_to<std::vector<double>>;
};

}  // namespace caldera::concepts
