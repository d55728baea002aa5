// Templates over concepts.h for training loops of one's own.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/autodiff/autodiff.h"
#include "engine/graph/lazy_tensor.h"
#include "training/loop/concepts.h"
#include "training/optim/optimizer.h"

namespace caldera {

namespace detail {
struct StoredParameter {
  std::string name;
  LazyTensor* tensor = nullptr;
};
void save_parameters(const std::filesystem::path& path, const std::vector<StoredParameter>& parameters);
void load_parameters(const std::filesystem::path& path, const std::vector<StoredParameter>& parameters);

template <concepts::Parameterized M>
std::vector<StoredParameter> stored_parameters(M& module) {
  std::vector<StoredParameter> all;
  for (const auto& p : module.parameters()) all.push_back({p.name, p.tensor});
  return all;
}
}  // namespace detail

/// Makes one step of training: predicts, differentiates the loss, updates, and evaluates all of it as one
/// plan. Returns the loss, evaluated. The optimiser is one of the module's parameters.
template <class M, class L, class O>
requires concepts::Trainable<M, L, O> LazyTensor train_step(M& module, const L& loss, O& optimizer,
                                                            const LazyTensor& input,
                                                            const LazyTensor& target) {
  const LazyTensor value = loss(module(input), target);
  const std::vector<LazyTensor> grads = grad(value, optimizer.inputs());
  optimizer.update(std::span<const LazyTensor>(grads));
  if constexpr (std::derived_from<O, Optimizer>) {
    eval({value}, optimizer);
  } else {
    std::vector<LazyTensor> results = optimizer.outputs();
    results.push_back(value);
    eval(results);
  }
  return value.detach();
}

/// Joins functions: compose(f, g)(x) is g(f(x)). What g cannot take does not compile where it is called.
template <class F, class G>
auto compose(F f, G g) {
  return
      [ f = std::move(f), g = std::move(g) ]<class X>(const X& x) requires concepts::Composable<const F, X> &&
      concepts::Composable<const G, decltype(f(x))> {
    return g(f(x));
  };
}

/// Writes the parameters by their names to a safetensors file, atomically. Throws FileError, and ValueError
/// for two of one name.
template <concepts::Parameterized M>
void save_parameters(M& module, const std::filesystem::path& path) {
  detail::save_parameters(path, detail::stored_parameters(module));
}
/// Reads them into a module of the same names, shapes and types. Throws FileError that names what does not
/// fit; nothing is changed then.
template <concepts::Parameterized M>
void load_parameters(M& module, const std::filesystem::path& path) {
  detail::load_parameters(path, detail::stored_parameters(module));
}

}  // namespace caldera
