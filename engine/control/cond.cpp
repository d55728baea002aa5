#include "engine/control/cond.h"

#include <fmt/core.h>

#include <memory>
#include <utility>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/opaque_call.h"
#include "engine/base/error.h"
#include "engine/control/carry.h"
#include "engine/control/control_node.h"
#include "engine/control/derivatives.h"
#include "engine/control/mapped_body.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/views.h"
#include "ops/elementwise/clip.h"

namespace caldera {
namespace {

/// A choice as its calls share it. Their arguments: `which`, then what all branches take, in order.
struct Choice {
  std::string title;
  std::vector<Body> branches;
  std::vector<std::vector<std::uint32_t>> takes;  // by branch: which of the arguments behind `which`
};
using ChoicePtr = std::shared_ptr<const Choice>;

std::vector<LazyTensor> choose(const std::string& title, const LazyTensor& which,
                               std::span<const VectorFunction> branches,
                               std::span<const LazyTensor> arguments);

std::vector<LazyTensor> run_branch(const Choice& choice, std::size_t branch,
                                   std::span<const LazyTensor> arguments) {
  std::vector<LazyTensor> values;
  for (const std::uint32_t i : choice.takes[branch]) values.push_back(arguments[i]);
  return choice.branches[branch](values);
}

class ChoiceRule final : public ControlRule {
 public:
  explicit ChoiceRule(ChoicePtr choice) : ControlRule(choice->title), choice_(std::move(choice)) {}

  /// The gradient of the branch that is chosen.
  Cotangents pull_back(const Call& call, std::span<const LazyTensor> cotangents, const IsWanted& is_wanted,
                       std::string_view) const override {
    const auto arguments = call.arguments.subspan(1);
    std::vector<std::size_t> targets;
    for (const std::size_t i : floating_among(arguments)) {
      if (is_wanted(arguments[i])) targets.push_back(i);
    }
    if (targets.empty()) return {};
    std::vector<LazyTensor> all(arguments.begin(), arguments.end());
    std::vector<std::size_t> given;
    for (std::size_t k = 0; k < cotangents.size(); ++k) {
      if (!cotangents[k].defined()) continue;
      given.push_back(k);
      all.push_back(cotangents[k]);
    }
    std::vector<VectorFunction> branches;
    for (std::size_t b = 0; b < choice_->branches.size(); ++b) {
      branches.emplace_back([&, b](std::span<const LazyTensor> values) {
        std::vector<LazyTensor> along(cotangents.size());
        for (std::size_t i = 0; i < given.size(); ++i) along[given[i]] = values[arguments.size() + i];
        return pulled_back([&](auto own) { return run_branch(*choice_, b, own); },
                           values.first(arguments.size()), targets, along, choice_->title);
      });
    }
    const std::vector<LazyTensor> grads = choose(choice_->title, call.arguments[0], branches, all);
    Cotangents out;
    for (std::size_t i = 0; i < targets.size(); ++i) out.emplace_back(arguments[targets[i]], grads[i]);
    return out;
  }

  std::vector<LazyTensor> push_forward(const Call& call, std::span<const LazyTensor> tangents,
                                       std::string_view transform) const override {
    const auto arguments = call.arguments.subspan(1);
    const std::vector<std::size_t> targets = floating_among(arguments);
    const std::vector<std::size_t> floating = floating_among(call.values);
    std::vector<LazyTensor> all(arguments.begin(), arguments.end());
    for (const std::size_t i : targets)
      all.push_back(tangents[1 + i].defined() ? tangents[1 + i] : zeros_like(arguments[i]));
    std::vector<VectorFunction> branches;
    for (std::size_t b = 0; b < choice_->branches.size(); ++b) {
      branches.emplace_back([&, b](std::span<const LazyTensor> values) {
        std::vector<LazyTensor> both = with_tangents([&](auto own) { return run_branch(*choice_, b, own); },
                                                     values.first(arguments.size()), targets,
                                                     values.subspan(arguments.size()), floating, transform);
        both.erase(both.begin(), both.begin() + static_cast<std::ptrdiff_t>(call.values.size()));
        return both;
      });
    }
    std::vector<LazyTensor> out(call.values.size());
    if (floating.empty()) return out;
    const std::vector<LazyTensor> along = choose(choice_->title, call.arguments[0], branches, all);
    for (std::size_t i = 0; i < floating.size(); ++i) out[floating[i]] = along[i];
    return out;
  }

  /// The choice for all examples at once; where they choose apart, all branches for all, and then each its
  /// own.
  std::vector<Batched> mapped_results(std::span<const Batched> arguments,
                                      std::int64_t examples) const override {
    const Choice& choice = *choice_;
    const auto given = arguments.subspan(1);
    const auto taken = [&](std::size_t b, std::span<const Batched> all) {
      std::vector<Batched> parameters;
      for (const std::uint32_t i : choice.takes[b]) parameters.push_back(all[i]);
      return parameters;
    };
    std::vector<bool> is_mapped(choice.branches[0].results().size(), arguments[0].is_mapped);
    if (arguments[0].is_mapped) {
      std::vector<LazyTensor> chosen;
      for (std::size_t b = 0; b < choice.branches.size(); ++b) {
        const std::vector<LazyTensor> values =
            placed(mapped_body(choice.branches[b], taken(b, given)), is_mapped, examples);
        if (b == 0) chosen = values;
        const LazyTensor is_here = arguments[0].value >= static_cast<std::int64_t>(b);
        for (std::size_t k = 0; b > 0 && k < values.size(); ++k)
          chosen[k] = chosen_by(is_here, values[k], chosen[k]);
      }
      return flagged(chosen, is_mapped);
    }
    for (std::size_t b = 0; b < choice.branches.size(); ++b) {
      const std::vector<bool> by_this = reached(choice.branches[b], which_mapped(taken(b, given)));
      for (std::size_t k = 0; k < is_mapped.size(); ++k) is_mapped[k] = is_mapped[k] || by_this[k];
    }
    std::vector<VectorFunction> branches;
    for (std::size_t b = 0; b < choice.branches.size(); ++b) {
      branches.emplace_back([&, b](std::span<const LazyTensor> values) {
        const std::vector<Batched> all = flagged(values, which_mapped(given));
        return placed(mapped_body(choice.branches[b], taken(b, all)), is_mapped, examples);
      });
    }
    std::vector<LazyTensor> values;
    for (const Batched& x : given) values.push_back(x.value);
    return flagged(choose(choice.title, arguments[0].value, branches, values), is_mapped);
  }

 private:
  ChoicePtr choice_;
};

/// Throws unless all branches give the same.
void check_branches(const Choice& choice) {
  const auto first = choice.branches[0].results();
  for (std::size_t b = 1; b < choice.branches.size(); ++b) {
    const auto results = choice.branches[b].results();
    if (results.size() != first.size()) {
      throw ValueError(fmt::format("{}: branch 0 gives {} results and branch {} gives {}; all give as many",
                                   choice.title, first.size(), b, results.size()));
    }
    for (std::size_t k = 0; k < first.size(); ++k) {
      if (results[k].shape() != first[k].shape()) {
        throw ShapeError(
            fmt::format("{}: result {} has shape {} in branch 0 and {} in branch {}; give one shape",
                        choice.title, k, first[k].shape().to_string(), results[k].shape().to_string(), b));
      }
      if (results[k].dtype() != first[k].dtype()) {
        throw DTypeError(
            fmt::format("{}: result {} is {} in branch 0 and {} in branch {}; give one type (astype())",
                        choice.title, k, name(first[k].dtype()), name(results[k].dtype()), b));
      }
    }
  }
}

std::vector<LazyTensor> choose(const std::string& title, const LazyTensor& which,
                               std::span<const VectorFunction> branches,
                               std::span<const LazyTensor> arguments) {
  Choice choice{.title = title, .branches = {}, .takes = {}};
  Constants constants;
  std::vector<LazyTensor> given;
  const Device device = which.device();
  for (const LazyTensor& x : arguments) given.push_back(ops::anchored(x, device));
  for (const VectorFunction& branch : branches) {
    choice.branches.emplace_back(branch, given, title);
    choice.takes.push_back(constants.add(given));
    const std::vector<std::uint32_t> captured = constants.add(choice.branches.back().captured());
    choice.takes.back().insert(choice.takes.back().end(), captured.begin(), captured.end());
  }
  check_branches(choice);
  const auto first = choice.branches[0].results();
  if (first.empty()) return {};
  std::vector<LazyTensor> inputs = constants.tensors();
  inputs.push_back(which);
  std::vector<LazyTensor> all = constants.tensors();
  all.insert(all.begin(), which);
  std::vector<TensorType> types;
  for (const LazyTensor& x : first) types.push_back(type_of(x));
  const ControlLayout layout{.kind = ControlKind::branch,
                             .constants = static_cast<std::uint32_t>(constants.tensors().size()),
                             .stacked = static_cast<std::uint32_t>(first.size())};
  const auto shared = std::make_shared<const Choice>(std::move(choice));
  std::vector<BodyPart> parts;
  for (std::size_t b = 0; b < shared->branches.size(); ++b)
    parts.push_back({&shared->branches[b], shared->takes[b], numbered(types.size())});
  const std::vector<LazyTensor> values = control_results(title, layout, inputs, std::move(types), parts);
  return results_of(make_call(std::make_shared<ChoiceRule>(shared), all, values), values);
}

/// Checks that it is one integer or bool, and puts it on the device of what the branches compute with.
LazyTensor selector(const LazyTensor& x, std::span<const LazyTensor> arguments, std::string_view title,
                    std::string_view what) {
  if (!x.defined() || x.numel() != 1) {
    throw ShapeError(fmt::format("{}: {} {}; give one number", title, what,
                                 x.defined() ? "has shape " + x.shape().to_string() : "is empty"));
  }
  if (is_floating(x.dtype()))
    throw DTypeError(fmt::format("{}: {} is {}; compare it first, or convert it with astype()", title, what,
                                 name(x.dtype())));
  return reshape(ops::anchored(x, device_among(std::span(&x, 1), arguments)), Shape{});
}

}  // namespace

std::vector<LazyTensor> switch_case(const LazyTensor& which, std::span<const VectorFunction> branches,
                                    std::span<const LazyTensor> arguments) {
  if (branches.empty()) throw ValueError("switch_case: there is no branch; give at least one");
  for (const VectorFunction& branch : branches) check_callable(branch, "switch_case");
  check_defined(arguments, "switch_case", "argument");
  const LazyTensor number = selector(which, arguments, "switch_case", "the number of the branch");
  // Before it is narrowed: a number beyond 32 bits is beyond the branches, too.
  const LazyTensor bounded = number.dtype() == DType::boolean
                                 ? number
                                 : clip(number, 0, static_cast<std::int64_t>(branches.size()) - 1);
  return choose("switch_case", astype(bounded, DType::i32), branches, arguments);
}

std::vector<LazyTensor> cond(const LazyTensor& predicate, const VectorFunction& if_true,
                             const VectorFunction& if_false, std::span<const LazyTensor> arguments) {
  check_callable(if_true, "cond");
  check_callable(if_false, "cond");
  check_defined(arguments, "cond", "argument");
  const std::vector<VectorFunction> branches{if_false, if_true};
  // What is not 0 is true.
  const LazyTensor is_true = astype(selector(predicate, arguments, "cond", "the predicate"), DType::boolean);
  return choose("cond", astype(is_true, DType::i32), branches, arguments);
}

LazyTensor cond(const LazyTensor& predicate, const UnaryFunction& if_true, const UnaryFunction& if_false,
                const LazyTensor& argument) {
  check_callable(if_true, "cond");
  check_callable(if_false, "cond");
  return cond(predicate, as_vector_function(as_tensor_function(if_true)),
              as_vector_function(as_tensor_function(if_false)), std::span(&argument, 1))[0];
}

}  // namespace caldera
