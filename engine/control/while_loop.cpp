#include "engine/control/while_loop.h"

#include <fmt/core.h>

#include <memory>
#include <utility>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/opaque_call.h"
#include "engine/base/error.h"
#include "engine/control/carry.h"
#include "engine/control/control_node.h"
#include "engine/control/derivatives.h"
#include "engine/control/reversal.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/views.h"

namespace caldera {
namespace {

constexpr const char* kTitle = "while_loop";

/// A loop as its calls share it. Their arguments: the first carries, the constants of the body, then those of
/// the test; their values: the last carries, and the count of turns.
struct WhileLoop {
  Body body;  // of carries: the count is none of its own
  Body test;
  std::size_t carries = 0;
  std::int64_t snapshots = 1;
};
using WhileLoopPtr = std::shared_ptr<const WhileLoop>;

class WhileRule final : public ControlRule {
 public:
  explicit WhileRule(WhileLoopPtr loop) : ControlRule(kTitle), loop_(std::move(loop)) {}

  Cotangents pull_back(const Call& call, std::span<const LazyTensor> cotangents, const IsWanted& is_wanted,
                       std::string_view) const override {
    const WhileLoop& loop = *loop_;
    const auto init = call.arguments.first(loop.carries);
    const auto constants = call.arguments.subspan(loop.carries, loop.body.captured().size());
    const std::vector<std::size_t> floating = floating_among(init);
    std::vector<std::size_t> wanted;
    for (const std::size_t i : floating_among(constants)) {
      if (is_wanted(constants[i])) wanted.push_back(i);
    }
    std::vector<LazyTensor> along;
    along.reserve(floating.size());
    for (const std::size_t i : floating)
      along.push_back(cotangents[i].defined() ? cotangents[i] : zeros_like(call.values[i]));
    const std::vector<LazyTensor> grads = reversal_of({.body = loop.body,
                                                       .init = init,
                                                       .over = {},
                                                       .constants = constants,
                                                       .turns_value = call.values.back(),
                                                       .snapshots = loop.snapshots},
                                                      along, {}, wanted, {}, kTitle)
                                              .results();
    Cotangents out;
    for (std::size_t i = 0; i < floating.size(); ++i) out.emplace_back(init[floating[i]], grads[i]);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      out.emplace_back(constants[wanted[i]], grads[floating.size() + i]);
    return out;
  }

  /// A loop over values and tangents.
  std::vector<LazyTensor> push_forward(const Call& call, std::span<const LazyTensor> tangents,
                                       std::string_view transform) const override {
    const WhileLoop& loop = *loop_;
    const std::size_t own = loop.carries + loop.body.captured().size();
    const auto primal = call.arguments.first(own);
    const auto of_test = call.arguments.subspan(own);
    const std::vector<std::size_t> floating = floating_among(primal.first(loop.carries));
    const std::vector<std::size_t> targets = floating_among(primal);
    std::vector<LazyTensor> start(primal.begin(), primal.begin() + static_cast<std::ptrdiff_t>(loop.carries));
    std::vector<LazyTensor> of_constants;
    for (const std::size_t i : targets) {
      LazyTensor tangent = tangents[i].defined() ? tangents[i] : zeros_like(primal[i]);
      (i < loop.carries ? start : of_constants).push_back(std::move(tangent));
    }
    const auto body = [&](std::span<const LazyTensor> all) {
      std::vector<LazyTensor> primals(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(loop.carries));
      primals.insert(primals.end(), primal.begin() + static_cast<std::ptrdiff_t>(loop.carries), primal.end());
      std::vector<LazyTensor> along(all.begin() + static_cast<std::ptrdiff_t>(loop.carries), all.end());
      along.insert(along.end(), of_constants.begin(), of_constants.end());
      return with_tangents([&](auto values) { return loop.body(values); }, primals, targets, along, floating,
                           transform);
    };
    const auto test = [&](std::span<const LazyTensor> all) {
      std::vector<LazyTensor> values(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(loop.carries));
      values.insert(values.end(), of_test.begin(), of_test.end());
      return loop.test(values)[0];
    };
    const std::vector<LazyTensor> both = while_loop(test, body, start, {.snapshots = loop.snapshots});
    std::vector<LazyTensor> out(call.values.size());
    for (std::size_t i = 0; i < floating.size(); ++i) out[floating[i]] = both[loop.carries + i];
    return out;
  }

 private:
  WhileLoopPtr loop_;
};

std::vector<LazyTensor> while_results(const WhileLoopPtr& loop, std::span<const LazyTensor> arguments) {
  const std::size_t carries = loop->carries;
  const auto of_body = arguments.subspan(carries, loop->body.captured().size());
  const auto of_test = arguments.subspan(carries + of_body.size());
  const auto with = [&](std::span<const LazyTensor> all, std::span<const LazyTensor> constants) {
    std::vector<LazyTensor> values(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(carries));
    values.insert(values.end(), constants.begin(), constants.end());
    return values;
  };
  // The count goes round behind the carries, and counts for the step alone.
  std::vector<LazyTensor> inputs(arguments.begin(), arguments.begin() + static_cast<std::ptrdiff_t>(carries));
  inputs.push_back(zeros({}, DType::i64, arguments.front().device()));
  std::vector<TensorType> types;
  types.reserve(inputs.size());
  for (const LazyTensor& x : inputs) types.push_back(type_of(x));
  const auto turn = [&](std::span<const LazyTensor> all) {
    std::vector<LazyTensor> out = loop->body(with(all, of_body));
    out.push_back(all[carries] + 1);
    return out;
  };
  const auto test = [&](std::span<const LazyTensor> all) { return loop->test(with(all, of_test)); };
  const auto masked_turn = [&](std::span<const LazyTensor> all) {
    const LazyTensor goes_on = test(all)[0];
    std::vector<LazyTensor> out = turn(all);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = where(goes_on, out[i], all[i]);
    out.push_back(goes_on);
    return out;
  };
  const auto copy = [](std::span<const LazyTensor> values) {
    return std::vector(values.begin(), values.end());
  };
  std::vector<VectorFunction> functions{turn, test, copy};
  // On a device that runs by itself, a turn that asks the host whether to run waits for it: several run in
  // one go, and those beyond the end give what they got.
  if (arguments.front().device().kind != DeviceKind::cpu) functions.emplace_back(masked_turn);
  std::vector<Body> bodies;
  Constants constants;
  std::vector<BodyPart> parts;
  bodies.reserve(functions.size());
  for (const VectorFunction& function : functions) {
    const Body& body = bodies.emplace_back(function, inputs, kTitle);
    BodyPart part{&body, numbered(carries + 1), numbered(body.results().size())};
    for (const std::uint32_t i : constants.add(body.captured()))
      part.parameters.push_back(static_cast<std::uint32_t>(carries + 1) + i);
    parts.push_back(std::move(part));
  }
  const ControlLayout layout{.kind = ControlKind::loop,
                             .carries = static_cast<std::uint32_t>(carries + 1),
                             .constants = static_cast<std::uint32_t>(constants.tensors().size())};
  inputs.insert(inputs.end(), constants.tensors().begin(), constants.tensors().end());
  const std::vector<LazyTensor> values = control_results(kTitle, layout, inputs, std::move(types), parts);
  return results_of(make_call(std::make_shared<WhileRule>(loop), arguments, values), values);
}

}  // namespace

std::vector<LazyTensor> while_loop(const TensorFunction& test, const VectorFunction& body,
                                   std::span<const LazyTensor> init, WhileOptions options) {
  check_callable(test, kTitle);
  check_callable(body, kTitle);
  if (options.snapshots < 1)
    throw ValueError(fmt::format("while_loop: {} snapshots; give 1 or more", options.snapshots));
  const std::vector<LazyTensor> start = first_carries(init, {}, kTitle);
  const auto turn = [&](std::span<const LazyTensor> carries) {
    return carries_after(body(carries), start, kTitle);
  };
  const auto asked = [&](std::span<const LazyTensor> carries) {
    const LazyTensor flag = test(carries);
    if (!flag.defined() || flag.numel() != 1) {
      throw ShapeError(fmt::format("while_loop: the test gives {}; it gives one bool",
                                   flag.defined() ? "shape " + flag.shape().to_string() : "nothing"));
    }
    return std::vector{reshape(astype(ops::anchored(flag, start.front().device()), DType::boolean), Shape{})};
  };
  Body traced_body(turn, start, kTitle), traced_test(asked, start, kTitle);
  std::vector<LazyTensor> arguments = start;
  for (const Body* part : {&traced_body, &traced_test})
    arguments.insert(arguments.end(), part->captured().begin(), part->captured().end());
  const auto loop = std::make_shared<const WhileLoop>(WhileLoop{.body = std::move(traced_body),
                                                                .test = std::move(traced_test),
                                                                .carries = start.size(),
                                                                .snapshots = options.snapshots});
  std::vector<LazyTensor> values = while_results(loop, arguments);
  values.pop_back();
  return values;
}

LazyTensor while_loop(const UnaryFunction& test, const UnaryFunction& body, const LazyTensor& init,
                      WhileOptions options) {
  check_callable(test, kTitle);
  check_callable(body, kTitle);
  return while_loop([&](std::span<const LazyTensor> x) { return test(x[0]); },
                    [&](std::span<const LazyTensor> x) { return std::vector{body(x[0])}; },
                    std::span(&init, 1), options)[0];
}

}  // namespace caldera
