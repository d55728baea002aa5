#include "engine/autodiff/custom_vjp.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_set>
#include <utility>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/forward.h"
#include "engine/autodiff/opaque_call.h"
#include "engine/autodiff/vmap.h"
#include "ops/core/creation.h"
#include "ops/core/sum.h"

namespace caldera {
namespace {

/// What graphs and messages call it.
std::string title_of(const CustomVjp& rule) {
  return rule.name == "custom_vjp" ? rule.name : fmt::format("custom_vjp '{}'", rule.name);
}

/// What a rule (`which`) gave for some tensors (each a `what`), checked against them and brought to their
/// dtypes and devices. Empty where it is zero, or the tensor is not floating.
std::vector<LazyTensor> fitted_gradient(const CustomVjp& rule, std::string_view which,
                                        std::span<const LazyTensor> given, std::span<const LazyTensor> wanted,
                                        std::string_view what) {
  if (given.size() != wanted.size()) {
    throw ShapeError(fmt::format("{}: the {} rule gave {} tensors for {} {}s", title_of(rule), which,
                                 given.size(), wanted.size(), what));
  }
  std::vector<LazyTensor> out(given.size());
  for (std::size_t i = 0; i < given.size(); ++i) {
    const LazyTensor &g = given[i], &x = wanted[i];
    if (!g.defined() || !is_floating(x.dtype())) continue;
    if (!is_floating(g.dtype()) && !g.node().is_scalar_leaf()) {
      throw DTypeError(fmt::format("{}: the {} rule gave {} for {} {}, which is {}; a derivative is floating",
                                   title_of(rule), which, name(g.dtype()), what, i, name(x.dtype())));
    }
    const std::string source =
        fmt::format("{}: what the {} rule gave for {} {}", title_of(rule), which, what, i);
    out[i] = derivative_of(x, g, source, fmt::format("the {}", what));
  }
  return out;
}

/// Throws GradientError if what a mapped rule gave depends on one of the placeholders (their ids, sorted) in
/// another way than through what the rule was given: the map has ended, and they stand for nothing any more.
void check_escaped(const CustomVjp& rule, std::string_view which, std::span<const LazyTensor> gave,
                   std::span<const LazyTensor> given, const std::vector<std::uint64_t>& placeholders) {
  std::vector<Node*> roots;
  for (const LazyTensor& x : gave) roots.push_back(&x.node());
  std::unordered_set<const Node*> known;
  for (const LazyTensor& x : given) known.insert(&x.node());
  const std::scoped_lock lock(graph_mutex());
  const auto is_leaf = [&](const Node& node) {
    return node.id() < placeholders.front() || known.contains(&node);
  };
  for (const Node* node : topological_order(roots, is_leaf)) {
    if (!std::binary_search(placeholders.begin(), placeholders.end(), node->id())) continue;
    throw GradientError(fmt::format(
        "{}: the {} rule captures a tensor that vmap maps (an example has shape {}), which has no "
        "value outside of the mapped function; pass it as an argument",
        title_of(rule), which, node->shape().to_string()));
  }
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

/// The rule of all examples under vmap; `is_mapped` tells of each argument. Results are all mapped. What
/// stands for mapped arguments (`placeholders`, the oldest first) must not be captured by the rule.
std::shared_ptr<const CustomVjp> mapped_rule(const std::shared_ptr<const CustomVjp>& rule,
                                             const std::vector<bool>& is_mapped,
                                             std::span<const LazyTensor> placeholders) {
  std::vector<std::uint64_t> ids;
  for (const LazyTensor& placeholder : placeholders) ids.push_back(placeholder.node_id());
  auto mapped = std::make_shared<CustomVjp>();
  mapped->name = rule->name;
  mapped->backward = [rule, is_mapped, ids](std::span<const LazyTensor> arguments,
                                            std::span<const LazyTensor> results,
                                            std::span<const LazyTensor> cotangents) {
    const VectorFunction one = on_one_list(rule->backward, arguments.size(), results.size(), true);
    const std::vector<LazyTensor> given = joined(arguments, results, filled(cotangents, results));
    std::vector<LazyTensor> grads = vmap(one, axes_of(is_mapped, results.size(), false), 0)(given);
    check_escaped(*rule, "backward", grads, given, ids);
    // An argument that all examples share gets the sum of what each sends back.
    for (std::size_t i = 0; i < grads.size() && i < is_mapped.size(); ++i) {
      if (!is_mapped[i]) grads[i] = sum(grads[i], 0);
    }
    return grads;
  };
  if (rule->tangent) {
    mapped->tangent = [rule, is_mapped, ids](std::span<const LazyTensor> arguments,
                                             std::span<const LazyTensor> results,
                                             std::span<const LazyTensor> tangents) {
      const VectorFunction one = on_one_list(rule->tangent, arguments.size(), results.size(), false);
      const std::vector<LazyTensor> given = joined(arguments, results, filled(tangents, arguments));
      std::vector<LazyTensor> out = vmap(one, axes_of(is_mapped, results.size(), true), 0)(given);
      check_escaped(*rule, "tangent", out, given, ids);
      return out;
    };
  }
  return mapped;
}

/// The rule of the calls of one function.
class CustomVjpRule : public CallRule {
 public:
  explicit CustomVjpRule(std::shared_ptr<const CustomVjp> rule) : rule_(std::move(rule)) {}

  std::string title() const override { return title_of(*rule_); }

  Cotangents pull_back(const Call& call, std::span<const LazyTensor> cotangents, const IsWanted& is_wanted,
                       std::string_view) const override {
    for (std::size_t k = 0; k < call.values.size(); ++k) {
      if (is_wanted(call.values[k])) refuse_capture(k);
    }
    const std::vector<LazyTensor> results = results_of(call.node, call.values);
    const std::vector<LazyTensor> grads =
        rule_->backward(call.arguments, results, filled(cotangents, results));
    const std::vector<LazyTensor> fitting =
        fitted_gradient(*rule_, "backward", grads, call.arguments, "argument");
    Cotangents out;
    for (std::size_t i = 0; i < fitting.size(); ++i) {
      if (fitting[i].defined()) out.emplace_back(call.arguments[i], fitting[i]);
    }
    return out;
  }

  std::vector<LazyTensor> push_forward(const Call& call, std::span<const LazyTensor> tangents,
                                       std::string_view transform) const override {
    const std::size_t count = call.arguments.size();
    for (std::size_t k = 0; k < call.values.size(); ++k) {
      if (tangents[count + k].defined()) refuse_capture(k);
    }
    if (!rule_->tangent) {
      throw NoTangentRule(fmt::format(
          "{}: '{}' has a gradient of its own (custom_vjp) and no tangent rule; give it one, or use "
          "reverse mode",
          transform, rule_->name));
    }
    const std::vector<LazyTensor> results = results_of(call.node, call.values);
    const std::vector<LazyTensor> out =
        rule_->tangent(call.arguments, results, filled(tangents.first(count), call.arguments));
    return fitted_gradient(*rule_, "tangent", out, results, "result");
  }

  std::shared_ptr<const CallRule> mapped(const std::vector<bool>& is_mapped,
                                         std::span<const LazyTensor> placeholders) const override {
    return std::make_shared<CustomVjpRule>(mapped_rule(rule_, is_mapped, placeholders));
  }
  bool maps_all_results() const override { return true; }

 private:
  /// Value k of a call depends on something under differentiation past the arguments: that part of the
  /// derivative would be lost.
  [[noreturn]] void refuse_capture(std::size_t k) const {
    throw GradientError(
        fmt::format("{}: its result {} depends on a tensor under differentiation that is not among its "
                    "arguments; pass it as one, or detach() it",
                    title(), k));
  }

  std::shared_ptr<const CustomVjp> rule_;
};

}  // namespace

VectorFunction custom_vjp(CustomVjp rule) {
  if (!rule.forward || !rule.backward) {
    throw ValueError(
        fmt::format("{}: a function with a gradient of its own needs both its rules, forward and "
                    "backward",
                    title_of(rule)));
  }
  return [rule = std::make_shared<const CustomVjp>(std::move(rule))](std::span<const LazyTensor> arguments) {
    check_defined(arguments, title_of(*rule), "argument");
    std::vector<LazyTensor> inside;
    inside.reserve(arguments.size());
    for (const LazyTensor& x : arguments) inside.push_back(stop_gradient(x));
    const std::vector<LazyTensor> values = rule->forward(inside);
    check_defined(values, title_of(*rule), "result");
    return results_of(make_call(std::make_shared<CustomVjpRule>(rule), arguments, values), values);
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

}  // namespace caldera
