#include "engine/control/while_loop.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/batching.h"
#include "engine/autodiff/opaque_call.h"
#include "engine/base/error.h"
#include "engine/control/carry.h"
#include "engine/control/control_node.h"
#include "engine/control/derivatives.h"
#include "engine/control/mapped_body.h"
#include "engine/control/reversal.h"
#include "engine/control/scan.h"
#include "ops/core/arithmetic.h"
#include "ops/core/cast.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/core/node_builder.h"
#include "ops/core/selection.h"
#include "ops/core/views.h"
#include "ops/reduce/statistics.h"

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

/// A reversal as loops that have gradients. The carries of a bounded number of turns are kept, at even
/// distances; what is between them is computed again for each turn, from the carries before it.
std::vector<LazyTensor> reversal_as_loops(const Reversal& r, std::span<const LazyTensor> arguments) {
  constexpr std::int64_t kMostKept = 64;
  const ReversalArguments of(r, arguments);
  const LazyTensor& turns = arguments.back();
  const std::int64_t blocks = std::min(r.snapshots, kMostKept);
  const LazyTensor length = floor_divide(turns + (blocks - 1), blocks);
  const LazyTensor numbers = iota(Shape{blocks}, 0, DType::i64, turns.device());
  const auto turns_of = [&](const LazyTensor& block) { return minimum(length, turns - block * length); };
  const WhileOptions options{.snapshots = r.snapshots};

  /// The carries that are so many turns behind these.
  const auto advanced = [&](std::span<const LazyTensor> carries, const LazyTensor& count) {
    const auto turn = [&](std::span<const LazyTensor> x) {
      std::vector<LazyTensor> next = r.advance(joined({x.first(r.carries), of.of_advance}));
      next.push_back(x.back() + 1);
      return next;
    };
    const LazyTensor none = zeros({}, DType::i64, turns.device());
    std::vector<LazyTensor> end = while_loop([&](std::span<const LazyTensor> x) { return x.back() < count; },
                                             turn, joined({carries, {&none, 1}}), options);
    end.pop_back();
    return end;
  };
  const ScanTurn starts = scan(
      [&](std::span<const LazyTensor> carries, std::span<const LazyTensor> block) {
        return ScanTurn{advanced(carries, turns_of(block[0])), std::vector(carries.begin(), carries.end())};
      },
      of.carries, {&numbers, 1});
  const auto block_back = [&](std::span<const LazyTensor> states, std::span<const LazyTensor> block) {
    const auto turn_back = [&](std::span<const LazyTensor> x) {
      const LazyTensor left = x.back() - 1;
      const std::vector<LazyTensor> at = joined({advanced(block.subspan(1), left), x.first(r.states)});
      std::vector<LazyTensor> before = r.back(joined({at, of.of_back}));
      before.push_back(left);
      return before;
    };
    const LazyTensor count = turns_of(block[0]);
    std::vector<LazyTensor> before = while_loop([](std::span<const LazyTensor> x) { return x.back() > 0; },
                                                turn_back, joined({states, {&count, 1}}), options);
    before.pop_back();
    return ScanTurn{before};
  };
  return scan(block_back, of.states, joined({{&numbers, 1}, starts.stacked}), {.reverse = true}).carry;
}

/// The last carries of a loop, and the count of its turns.
std::vector<LazyTensor> carries_and_count(const TensorFunction& test, const VectorFunction& body,
                                          std::span<const LazyTensor> init, std::int64_t snapshots);

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
    const std::vector<LazyTensor> grads =
        reversal_of({.body = loop.body,
                     .init = init,
                     .over = {},
                     .listed = {},
                     .constants = constants,
                     .turns_value = results_of(call.node, call.values).back(),
                     .snapshots = loop.snapshots,
                     .as_loops = &reversal_as_loops},
                    {along}, {wanted}, kTitle)
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

  /// A loop over all examples, until the last of them is done.
  std::vector<Batched> mapped_results(std::span<const Batched> arguments,
                                      std::int64_t examples) const override {
    const WhileLoop& loop = *loop_;
    const std::size_t carries = loop.carries;
    const auto of_body = arguments.subspan(carries, loop.body.captured().size());
    const auto of_test = arguments.subspan(carries + of_body.size());
    std::vector<bool> is_mapped = which_mapped(arguments.first(carries + of_body.size()));
    mark_carried(loop.body, is_mapped, 0, carries);
    std::vector<bool> for_test(is_mapped.begin(), is_mapped.begin() + static_cast<std::ptrdiff_t>(carries));
    for (const Batched& x : of_test) for_test.push_back(x.is_mapped);
    const bool ends_apart = reached(loop.test, for_test)[0];
    if (ends_apart) std::fill_n(is_mapped.begin(), carries, true);

    const auto run = [&](const Body& part, std::span<const LazyTensor> all,
                         std::span<const Batched> constants) {
      std::vector<Batched> parameters = flagged(all.first(carries), is_mapped);
      parameters.insert(parameters.end(), constants.begin(), constants.end());
      return mapped_body(part, parameters);
    };
    const auto goes_on = [&](std::span<const LazyTensor> all) {
      return with_mapped_axis(run(loop.test, all, of_test)[0], examples);
    };
    const auto test = [&](std::span<const LazyTensor> all) {
      return ends_apart ? any(goes_on(all)) : run(loop.test, all, of_test)[0].value;
    };
    const auto body = [&](std::span<const LazyTensor> all) {
      std::vector<LazyTensor> next = placed(run(loop.body, all, of_body), is_mapped, examples);
      if (!ends_apart) return next;
      // What is done keeps what it has; the count of each example's turns goes round behind the carries.
      const LazyTensor goes = goes_on(all);
      next.push_back(all[carries] + 1);
      for (std::size_t i = 0; i < next.size(); ++i) next[i] = chosen_by(goes, next[i], all[i]);
      return next;
    };
    std::vector<LazyTensor> init = placed(arguments.first(carries), is_mapped, examples);
    if (ends_apart) init.push_back(zeros(Shape{examples}, DType::i64, init.front().device()));
    const std::vector<LazyTensor> values = carries_and_count(test, body, init, loop.snapshots);
    std::vector<Batched> out = flagged(std::span(values).first(carries), is_mapped);
    out.push_back({values[carries], ends_apart});
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

std::vector<LazyTensor> carries_and_count(const TensorFunction& test, const VectorFunction& body,
                                          std::span<const LazyTensor> init, std::int64_t snapshots) {
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
                                                                .snapshots = snapshots});
  return while_results(loop, arguments);
}

}  // namespace

std::vector<LazyTensor> while_loop(const TensorFunction& test, const VectorFunction& body,
                                   std::span<const LazyTensor> init, WhileOptions options) {
  check_callable(test, kTitle);
  check_callable(body, kTitle);
  if (options.snapshots < 1)
    throw ValueError(fmt::format("while_loop: {} snapshots; give 1 or more", options.snapshots));
  std::vector<LazyTensor> values = carries_and_count(test, body, init, options.snapshots);
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
