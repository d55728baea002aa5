#include "engine/control/derivatives.h"

#include <algorithm>
#include <optional>

#include "engine/autodiff/forward.h"
#include "engine/autodiff/opaque_call.h"
#include "engine/autodiff/reverse.h"
#include "engine/autodiff/trace_scope.h"
#include "engine/autodiff/vmap.h"
#include "ops/core/creation.h"

namespace caldera {
namespace {

/// A call that is differentiated as another function that computes the same.
class EquivalentRule final : public ControlRule {
 public:
  EquivalentRule(std::string title, VectorFunction function, VectorFunction equivalent)
      : ControlRule(std::move(title)), function_(std::move(function)), equivalent_(std::move(equivalent)) {}

  Cotangents pull_back(const Call& call, std::span<const LazyTensor> cotangents, const IsWanted&,
                       std::string_view transform) const override {
    return cotangents_by(equivalent_, call, cotangents, transform);
  }

  std::vector<LazyTensor> push_forward(const Call& call, std::span<const LazyTensor> tangents,
                                       std::string_view transform) const override {
    const std::vector<std::size_t> targets = floating_among(call.arguments);
    const std::vector<std::size_t> floating = floating_among(call.values);
    std::vector<LazyTensor> along;
    along.reserve(targets.size());
    for (const std::size_t i : targets)
      along.push_back(tangents[i].defined() ? tangents[i] : zeros_like(call.arguments[i]));
    const std::vector<LazyTensor> both =
        with_tangents(equivalent_, call.arguments, targets, along, floating, transform);
    std::vector<LazyTensor> out(call.values.size());
    for (std::size_t i = 0; i < floating.size(); ++i) out[floating[i]] = both[call.values.size() + i];
    return out;
  }

  std::vector<Batched> mapped_results(std::span<const Batched> arguments, std::int64_t) const override {
    std::vector<std::optional<int>> axes;
    std::vector<LazyTensor> values;
    for (const Batched& x : arguments) {
      axes.push_back(x.is_mapped ? std::optional<int>(0) : std::nullopt);
      values.push_back(x.value);
    }
    const bool is_mapped = std::ranges::any_of(arguments, &Batched::is_mapped);
    const auto over_all = [&](const VectorFunction& one) { return is_mapped ? vmap(one, axes) : one; };
    std::vector<Batched> out;
    for (LazyTensor& x : differentiated_as(title(), over_all(function_), over_all(equivalent_), values))
      out.push_back({std::move(x), is_mapped});
    return out;
  }

 private:
  VectorFunction function_;
  VectorFunction equivalent_;
};

}  // namespace

std::vector<std::size_t> floating_among(std::span<const LazyTensor> tensors, std::size_t first) {
  std::vector<std::size_t> numbers;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (is_floating(tensors[i].dtype())) numbers.push_back(first + i);
  }
  return numbers;
}

std::vector<LazyTensor> pulled_back(const VectorFunction& function, std::span<const LazyTensor> arguments,
                                    std::span<const std::size_t> targets,
                                    std::span<const LazyTensor> cotangents, std::string_view transform) {
  const TraceScope scope;
  const std::vector<LazyTensor> traced = scope.traced(arguments);
  const std::vector<LazyTensor> results = function(traced);
  std::vector<LazyTensor> outputs, along, with_respect;
  for (std::size_t k = 0; k < cotangents.size(); ++k) {
    if (!cotangents[k].defined()) continue;
    outputs.push_back(results[k]);
    along.push_back(cotangents[k]);
  }
  for (const std::size_t i : targets) with_respect.push_back(traced[i]);
  std::vector<LazyTensor> grads(targets.size());
  if (!outputs.empty() && !with_respect.empty()) grads = pull_back(outputs, with_respect, along, transform);
  for (std::size_t i = 0; i < grads.size(); ++i) {
    if (!grads[i].defined()) grads[i] = zeros_like(arguments[targets[i]]);
  }
  return grads;
}

Cotangents cotangents_by(const VectorFunction& function, const Call& call,
                         std::span<const LazyTensor> cotangents, std::string_view transform) {
  const std::vector<std::size_t> targets = floating_among(call.arguments);
  const std::vector<LazyTensor> grads = pulled_back(function, call.arguments, targets, cotangents, transform);
  Cotangents out;
  for (std::size_t i = 0; i < targets.size(); ++i) out.emplace_back(call.arguments[targets[i]], grads[i]);
  return out;
}

std::vector<LazyTensor> with_tangents(const VectorFunction& function, std::span<const LazyTensor> arguments,
                                      std::span<const std::size_t> targets,
                                      std::span<const LazyTensor> tangents,
                                      std::span<const std::size_t> floating, std::string_view transform) {
  std::vector<LazyTensor> along(arguments.size());
  for (std::size_t i = 0; i < targets.size(); ++i) along[targets[i]] = tangents[i];
  auto [results, all] = value_and_tangents(function, arguments, along, transform);
  for (const std::size_t k : floating) results.push_back(all[k]);
  return std::move(results);
}

std::vector<LazyTensor> differentiated_as(std::string title, VectorFunction function,
                                          VectorFunction equivalent, std::span<const LazyTensor> arguments) {
  std::vector<LazyTensor> inside;
  inside.reserve(arguments.size());
  for (const LazyTensor& x : arguments) inside.push_back(stop_gradient(x));
  const std::vector<LazyTensor> values = function(inside);
  auto rule = std::make_shared<EquivalentRule>(std::move(title), std::move(function), std::move(equivalent));
  return results_of(make_call(std::move(rule), arguments, values), values);
}

}  // namespace caldera
