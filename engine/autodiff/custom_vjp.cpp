#include "engine/autodiff/custom_vjp.h"

#include <fmt/core.h>

#include <optional>
#include <utility>

#include "engine/autodiff/call.h"
#include "engine/autodiff/vmap.h"
#include "ops/ops.h"

namespace caldera {
namespace {

void check_count(const CustomVjp& rule, const char* which, std::size_t given, std::size_t wanted,
                 const char* what) {
  if (given == wanted) return;
  throw ShapeError(
      fmt::format("{}: the {} rule gave {} tensors for {} {}", rule.name, which, given, wanted, what));
}

std::vector<LazyTensor> filled(std::span<const LazyTensor> given, std::span<const LazyTensor> like) {
  std::vector<LazyTensor> all(given.begin(), given.end());
  for (std::size_t i = 0; i < all.size() && i < like.size(); ++i) {
    if (!all[i].defined()) all[i] = zeros_like(like[i]);
  }
  return all;
}

/// A rule as a function of one list of arguments, results and what comes to them.
VectorFunction on_one_list(const CustomVjp::Rule& rule, std::size_t arguments, std::size_t results,
                           bool gives_arguments) {
  return [=](std::span<const LazyTensor> all) {
    const auto x = all.first(arguments), y = all.subspan(arguments, results);
    return filled(rule(x, y, all.subspan(arguments + results)), gives_arguments ? x : y);
  };
}

std::vector<LazyTensor> joined(std::span<const LazyTensor> a, std::span<const LazyTensor> b,
                               std::span<const LazyTensor> c) {
  std::vector<LazyTensor> all(a.begin(), a.end());
  all.insert(all.end(), b.begin(), b.end());
  all.insert(all.end(), c.begin(), c.end());
  return all;
}

/// The axes of mapped arguments, results and what comes to them.
std::vector<std::optional<int>> axes_of(const std::vector<bool>& is_mapped, std::size_t results,
                                        bool along_arguments) {
  std::vector<std::optional<int>> axes;
  const auto arguments = [&] {
    for (const bool mapped : is_mapped) axes.push_back(mapped ? std::optional<int>(0) : std::nullopt);
  };
  const auto all_results = [&] { axes.insert(axes.end(), results, 0); };
  arguments();
  all_results();
  along_arguments ? arguments() : all_results();
  return axes;
}

}  // namespace

VectorFunction custom_vjp(CustomVjp rule) {
  if (!rule.forward || !rule.backward) {
    throw ValueError(
        fmt::format("{}: a function with a gradient of its own needs both its rules, forward and "
                    "backward",
                    rule.name));
  }
  return [rule = std::make_shared<const CustomVjp>(std::move(rule))](std::span<const LazyTensor> arguments) {
    std::vector<LazyTensor> inside;
    inside.reserve(arguments.size());
    for (const LazyTensor& x : arguments) inside.push_back(stop_gradient(x));
    const std::vector<LazyTensor> values = rule->forward(inside);
    return results_of(custom_call(rule, arguments, values), values);
  };
}

TensorFunction custom_vjp(
    TensorFunction forward,
    std::function<std::vector<LazyTensor>(std::span<const LazyTensor>, const LazyTensor&, const LazyTensor&)>
        backward,
    std::string name) {
  CustomVjp rule{.name = std::move(name)};
  if (forward) rule.forward = as_vector_function(std::move(forward));
  if (backward) {
    rule.backward = [backward = std::move(backward)](std::span<const LazyTensor> arguments,
                                                     std::span<const LazyTensor> results,
                                                     std::span<const LazyTensor> cotangents) {
      return backward(arguments, results[0], cotangents[0]);
    };
  }
  return [all = custom_vjp(std::move(rule))](std::span<const LazyTensor> arguments) {
    return all(arguments)[0];
  };
}

std::shared_ptr<const CustomVjp> mapped_rule(const std::shared_ptr<const CustomVjp>& rule,
                                             const std::vector<bool>& is_mapped) {
  auto mapped = std::make_shared<CustomVjp>();
  mapped->name = rule->name;
  mapped->backward = [rule, is_mapped](std::span<const LazyTensor> arguments,
                                       std::span<const LazyTensor> results,
                                       std::span<const LazyTensor> cotangents) {
    const VectorFunction one = on_one_list(rule->backward, arguments.size(), results.size(), true);
    std::vector<LazyTensor> grads = vmap(one, axes_of(is_mapped, results.size(), false),
                                         0)(joined(arguments, results, filled(cotangents, results)));
    // An argument that all examples share gets the sum of what each sends back.
    for (std::size_t i = 0; i < grads.size() && i < is_mapped.size(); ++i) {
      if (!is_mapped[i]) grads[i] = sum(grads[i], 0);
    }
    return grads;
  };
  if (rule->tangent) {
    mapped->tangent = [rule, is_mapped](std::span<const LazyTensor> arguments,
                                        std::span<const LazyTensor> results,
                                        std::span<const LazyTensor> tangents) {
      const VectorFunction one = on_one_list(rule->tangent, arguments.size(), results.size(), false);
      std::vector<std::optional<int>> axes = axes_of(is_mapped, results.size(), true);
      return vmap(one, axes, 0)(joined(arguments, results, filled(tangents, arguments)));
    };
  }
  return mapped;
}

// ---- differentiation

void check_captured(const Call& call, const std::function<bool(std::size_t k)>& depends) {
  for (std::size_t k = 0; k < call.values.size(); ++k) {
    if (!depends(k)) continue;
    throw GradientError(
        fmt::format("{}: its result {} depends on a tensor under differentiation that is not among its "
                    "arguments; pass it as one, or detach() it",
                    rule_of(call.node.node())->name, k));
  }
}

Cotangents pull_back_custom(const Call& call, std::span<const LazyTensor> cotangents) {
  const std::shared_ptr<const CustomVjp> rule = rule_of(call.node.node());
  const std::vector<LazyTensor> results = results_of(call.node, call.values);
  const std::vector<LazyTensor> grads = rule->backward(call.arguments, results, filled(cotangents, results));
  check_count(*rule, "backward", grads.size(), call.arguments.size(), "arguments");
  Cotangents out;
  for (std::size_t i = 0; i < grads.size(); ++i) {
    const LazyTensor& x = call.arguments[i];
    if (!grads[i].defined() || !is_floating(x.dtype())) continue;
    if (grads[i].shape() != x.shape()) {
      throw ShapeError(fmt::format("{}: the backward rule gave shape {} for argument {} of shape {}",
                                   rule->name, grads[i].shape().to_string(), i, x.shape().to_string()));
    }
    out.emplace_back(x, grads[i]);
  }
  return out;
}

std::vector<LazyTensor> push_custom(const Call& call, std::span<const LazyTensor> tangents) {
  const std::shared_ptr<const CustomVjp> rule = rule_of(call.node.node());
  const auto count = call.arguments.size();
  if (!rule->tangent) {
    throw GradientError(fmt::format(
        "jvp: '{}' has a gradient of its own (custom_vjp) and no tangent rule; give it one, or use "
        "reverse mode",
        rule->name));
  }
  const std::vector<LazyTensor> results = results_of(call.node, call.values);
  std::vector<LazyTensor> out =
      rule->tangent(call.arguments, results, filled(tangents.first(count), call.arguments));
  check_count(*rule, "tangent", out.size(), results.size(), "results");
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (!out[k].defined() || out[k].shape() == results[k].shape()) continue;
    throw ShapeError(fmt::format("{}: the tangent rule gave shape {} for result {} of shape {}", rule->name,
                                 out[k].shape().to_string(), k, results[k].shape().to_string()));
  }
  return out;
}

}  // namespace caldera
