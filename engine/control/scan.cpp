#include "engine/control/scan.h"

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
#include "engine/control/reversal.h"
#include "ops/core/arithmetic.h"
#include "ops/core/creation.h"

namespace caldera {
namespace {

/// A scan as its calls share it. Their arguments: the first carries, the tensors gone through, the constants;
/// their values: the last carries, the stacked results, and stacked, the carries that each turn began with.
struct ScanLoop {
  std::string title;
  Body body;
  std::size_t carries = 0;
  std::size_t over = 0;
  std::size_t stacked = 0;
  std::int64_t turns = 0;
  bool reverse = false;
  std::int64_t snapshots = 0;
};
using ScanLoopPtr = std::shared_ptr<const ScanLoop>;

std::vector<LazyTensor> scan_results(const ScanLoopPtr& loop, std::span<const LazyTensor> arguments);

/// What a scan gives, and stacked, the carries that its turns began with (none of no turns).
struct AllOfScan {
  ScanTurn turn;
  std::vector<LazyTensor> kept = {};
};
AllOfScan all_of_scan(std::string title, const ScanBody& body, std::span<const LazyTensor> first,
                      std::span<const LazyTensor> over, const ScanOptions& options);

ScanTurn split(std::vector<LazyTensor> all, std::size_t carries) {
  ScanTurn turn;
  const auto at = all.begin() + static_cast<std::ptrdiff_t>(carries);
  turn.carry.assign(all.begin(), at);
  turn.stacked.assign(at, all.end());
  return turn;
}

/// What a gradient of a call asks for.
struct Wanted {
  std::vector<std::size_t> carries, constants, over;  // numbers of those that are floating, and wanted

  std::vector<std::size_t> of_body(const ScanLoop& loop) const {
    std::vector<std::size_t> targets = carries;
    for (const std::size_t i : constants) targets.push_back(loop.carries + loop.over + i);
    for (const std::size_t i : over) targets.push_back(loop.carries + i);
    return targets;
  }
};

/// The cotangents of what is wanted, in the order carries, constants, over, from the carries of all turns
/// (`kept`): a scan the other way.
std::vector<LazyTensor> gradients_from_kept(const ScanLoop& loop, std::span<const LazyTensor> arguments,
                                            std::span<const LazyTensor> kept,
                                            std::span<const LazyTensor> carries,
                                            std::span<const LazyTensor> stacked, const Wanted& wanted) {
  const std::span<const LazyTensor> over = arguments.subspan(loop.carries, loop.over);
  const std::span<const LazyTensor> constants = arguments.subspan(loop.carries + loop.over);
  std::vector<LazyTensor> start(carries.begin(), carries.end());
  for (const std::size_t i : wanted.constants) start.push_back(zeros_like(constants[i]));
  std::vector<LazyTensor> through = joined({kept, over});
  std::vector<std::size_t> given;
  for (std::size_t i = 0; i < stacked.size(); ++i) {
    if (!stacked[i].defined()) continue;
    given.push_back(i);
    through.push_back(stacked[i]);
  }
  const std::vector<std::size_t> targets = wanted.of_body(loop);
  const auto turn_back = [&](std::span<const LazyTensor> state, std::span<const LazyTensor> slices) {
    const std::size_t own = loop.carries + loop.over;
    const std::vector<LazyTensor> parameters = joined({slices.first(own), constants});
    std::vector<LazyTensor> cotangents(loop.body.results().size());
    for (std::size_t i = 0; i < wanted.carries.size(); ++i) cotangents[wanted.carries[i]] = state[i];
    for (std::size_t i = 0; i < given.size(); ++i) cotangents[loop.carries + given[i]] = slices[own + i];
    std::vector<LazyTensor> grads = pulled_back([&](auto values) { return loop.body(values); }, parameters,
                                                targets, cotangents, loop.title);
    for (std::size_t i = wanted.carries.size(); i < state.size(); ++i) grads[i] = state[i] + grads[i];
    return split(std::move(grads), state.size());
  };
  ScanTurn back = scan(turn_back, start, through, {.turns = loop.turns, .reverse = !loop.reverse});
  return joined({back.carry, back.stacked});
}

class ScanRule final : public ControlRule {
 public:
  explicit ScanRule(ScanLoopPtr loop) : ControlRule(loop->title), loop_(std::move(loop)) {}

  Cotangents pull_back(const Call& call, std::span<const LazyTensor> cotangents, const IsWanted& is_wanted,
                       std::string_view) const override {
    const ScanLoop& loop = *loop_;
    const auto init = call.arguments.first(loop.carries);
    const auto over = call.arguments.subspan(loop.carries, loop.over);
    const auto constants = call.arguments.subspan(loop.carries + loop.over);
    const auto wanted_of = [&](std::span<const LazyTensor> tensors) {
      std::vector<std::size_t> numbers;
      for (const std::size_t i : floating_among(tensors)) {
        if (is_wanted(tensors[i])) numbers.push_back(i);
      }
      return numbers;
    };
    const Wanted wanted{floating_among(init), wanted_of(constants), wanted_of(over)};
    std::vector<LazyTensor> along;
    for (const std::size_t i : wanted.carries)
      along.push_back(cotangents[i].defined() ? cotangents[i] : zeros_like(call.values[i]));
    // Those of the carries that turns began with among them: of gradients that read them.
    const auto stacked = cotangents.subspan(loop.carries);
    const std::vector<LazyTensor> results = results_of(call.node, call.values);
    const auto kept = std::span(results).subspan(loop.carries + loop.stacked);
    const std::vector<LazyTensor> grads =
        loop.snapshots > 0 && loop.turns > 1
            ? with_snapshots(call, along, stacked, wanted)
            : gradients_from_kept(loop, call.arguments, kept, along, stacked, wanted);
    Cotangents out;
    std::size_t next = 0;
    for (const std::size_t i : wanted.carries) out.emplace_back(init[i], grads[next++]);
    for (const std::size_t i : wanted.constants) out.emplace_back(constants[i], grads[next++]);
    for (const std::size_t i : wanted.over) out.emplace_back(over[i], grads[next++]);
    return out;
  }

  /// A scan over values and tangents.
  std::vector<LazyTensor> push_forward(const Call& call, std::span<const LazyTensor> tangents,
                                       std::string_view transform) const override {
    const ScanLoop& loop = *loop_;
    const auto init = call.arguments.first(loop.carries);
    const auto over = call.arguments.subspan(loop.carries, loop.over);
    const auto constants = call.arguments.subspan(loop.carries + loop.over);
    const auto tangent = [&](std::size_t i) {
      return tangents[i].defined() ? tangents[i] : zeros_like(call.arguments[i]);
    };
    const std::vector<std::size_t> carries = floating_among(init);
    const std::vector<std::size_t> targets = floating_among(call.arguments);
    const std::vector<std::size_t> floating = floating_among(loop.body.results());
    std::vector<LazyTensor> start(init.begin(), init.end()), through(over.begin(), over.end()), of_constants;
    for (const std::size_t i : targets) {
      if (i < loop.carries)
        start.push_back(tangent(i));
      else if (i < loop.carries + loop.over)
        through.push_back(tangent(i));
      else
        of_constants.push_back(tangent(i));
    }
    const auto turn = [&](std::span<const LazyTensor> carry, std::span<const LazyTensor> slices) {
      const auto primals = joined({carry.first(loop.carries), slices.first(loop.over), constants});
      const auto along = joined({carry.subspan(loop.carries), slices.subspan(loop.over), of_constants});
      const std::vector<LazyTensor> all = with_tangents([&](auto values) { return loop.body(values); },
                                                        primals, targets, along, floating, transform);
      const std::span<const LazyTensor> results(all);
      const std::size_t own = loop.body.results().size();
      ScanTurn out;
      out.carry = joined({results.first(loop.carries), results.subspan(own, carries.size())});
      out.stacked =
          joined({results.subspan(loop.carries, loop.stacked), results.subspan(own + carries.size())});
      return out;
    };
    const ScanTurn both = scan(turn, start, through,
                               {.turns = loop.turns, .reverse = loop.reverse, .snapshots = loop.snapshots});
    std::vector<LazyTensor> out(call.values.size());
    std::size_t next = loop.carries;
    for (const std::size_t i : carries) out[i] = both.carry[next++];
    next = loop.stacked;
    for (const std::size_t k : floating) {
      if (k >= loop.carries) out[k] = both.stacked[next++];
    }
    return out;
  }

  /// A scan over all examples.
  std::vector<Batched> mapped_results(std::span<const Batched> arguments,
                                      std::int64_t examples) const override {
    const ScanLoop& loop = *loop_;
    const auto constants = arguments.subspan(loop.carries + loop.over);
    std::vector<bool> is_mapped = which_mapped(arguments);
    mark_carried(loop.body, is_mapped, 0, loop.carries);
    std::vector<LazyTensor> over;
    for (const Batched& x : arguments.subspan(loop.carries, loop.over)) over.push_back(turns_in_front(x));
    std::vector<bool> is_mapped_result;
    const auto turn = [&](std::span<const LazyTensor> carry, std::span<const LazyTensor> slices) {
      std::vector<Batched> parameters = flagged(joined({carry, slices}), is_mapped);
      parameters.insert(parameters.end(), constants.begin(), constants.end());
      const std::vector<Batched> results = mapped_body(loop.body, parameters);
      is_mapped_result = which_mapped(results);
      ScanTurn out{.carry = placed(std::span(results).first(loop.carries), is_mapped, examples)};
      for (std::size_t i = 0; i < loop.stacked; ++i) out.stacked.push_back(results[loop.carries + i].value);
      return out;
    };
    const AllOfScan all =
        all_of_scan(loop.title, turn, placed(arguments.first(loop.carries), is_mapped, examples), over,
                    {.turns = loop.turns, .reverse = loop.reverse, .snapshots = loop.snapshots});
    std::vector<Batched> out = flagged(all.turn.carry, is_mapped);
    for (std::size_t i = 0; i < loop.stacked; ++i)
      out.push_back(examples_in_front(all.turn.stacked[i], is_mapped_result[loop.carries + i]));
    for (std::size_t i = 0; i < loop.carries; ++i)
      out.push_back(examples_in_front(all.kept[i], is_mapped[i]));
    return out;
  }

 private:
  std::vector<LazyTensor> with_snapshots(const Call& call, std::span<const LazyTensor> carries,
                                         std::span<const LazyTensor> stacked, const Wanted& wanted) const {
    std::vector<LazyTensor> defined;
    for (const LazyTensor& x : stacked) {
      if (x.defined()) defined.push_back(x);
    }
    const std::size_t own = call.arguments.size(), along = carries.size();
    std::vector<bool> has;
    for (const LazyTensor& x : stacked) has.push_back(x.defined());
    // Of all that the call of the gradient is given: the cotangents of what is stacked.
    const auto given_among = [own, along, has](std::span<const LazyTensor> all) {
      std::vector<LazyTensor> given(has.size());
      std::size_t next = own + along;
      for (std::size_t i = 0; i < has.size(); ++i) {
        if (has[i]) given[i] = all[next++];
      }
      return given;
    };
    const auto computed = [loop = loop_, own, along, given_among, wanted](std::span<const LazyTensor> all) {
      const auto arguments = all.first(own);
      return reversal_of({.body = loop->body,
                          .init = arguments.first(loop->carries),
                          .over = arguments.subspan(loop->carries, loop->over),
                          .constants = arguments.subspan(loop->carries + loop->over),
                          .turns = loop->turns,
                          .is_backwards = loop->reverse,
                          .snapshots = loop->snapshots},
                         all.subspan(own, along), given_among(all), wanted.constants, wanted.over,
                         loop->title)
          .results();
    };
    // Differentiated again, all carries are kept.
    const auto equivalent = [loop = loop_, own, along, given_among, wanted](std::span<const LazyTensor> all) {
      const auto arguments = all.first(own);
      const std::vector<LazyTensor> forward = scan_results(loop, arguments);
      return gradients_from_kept(*loop, arguments, std::span(forward).subspan(loop->carries + loop->stacked),
                                 all.subspan(own, along), given_among(all), wanted);
    };
    return differentiated_as(loop_->title, computed, equivalent, joined({call.arguments, carries, defined}));
  }

  ScanLoopPtr loop_;
};

/// All values of a call.
std::vector<LazyTensor> scan_results(const ScanLoopPtr& loop, std::span<const LazyTensor> arguments) {
  const Body& body = loop->body;
  const std::size_t own = loop->carries + loop->stacked;
  ControlLayout layout{.kind = ControlKind::loop,
                       .is_backwards = loop->reverse,
                       .carries = static_cast<std::uint32_t>(loop->carries),
                       .slices = static_cast<std::uint32_t>(loop->over),
                       .constants = static_cast<std::uint32_t>(arguments.size() - loop->carries - loop->over),
                       .stacked = static_cast<std::uint32_t>(loop->stacked + loop->carries),
                       .turns = loop->turns};
  std::vector<TensorType> types;
  for (std::size_t i = 0; i < loop->carries; ++i) types.push_back(type_of(arguments[i]));
  for (std::size_t i = loop->carries; i < own; ++i)
    types.push_back(stacked_type_of(body.results()[i], loop->turns));
  for (std::size_t i = 0; i < loop->carries; ++i) types.push_back(stacked_type_of(arguments[i], loop->turns));
  const std::vector<BodyPart> parts{{&body, numbered(arguments.size()), numbered(own + loop->carries)}};
  const std::vector<LazyTensor> values =
      control_results(loop->title, layout, arguments, std::move(types), parts);
  return results_of(make_call(std::make_shared<ScanRule>(loop), arguments, values), values);
}

std::int64_t turns_of(std::span<const LazyTensor> over, std::int64_t given, std::string_view title) {
  std::int64_t turns = given;
  for (std::size_t i = 0; i < over.size(); ++i) {
    if (over[i].rank() == 0)
      throw ShapeError(fmt::format("{}: tensor {} to go through has no axis to take slices along", title, i));
    if (turns >= 0 && over[i].shape(0) != turns) {
      throw ShapeError(fmt::format("{}: tensor {} has {} slices along its first axis, and there are {} turns",
                                   title, i, over[i].shape(0), turns));
    }
    turns = over[i].shape(0);
  }
  if (turns < 0)
    throw ValueError(fmt::format(
        "{}: the number of turns is not given: set .turns, or give a tensor to go through", title));
  return turns;
}

AllOfScan all_of_scan(std::string title, const ScanBody& body, std::span<const LazyTensor> first,
                      std::span<const LazyTensor> over, const ScanOptions& options) {
  check_callable(body, title);
  const std::vector<LazyTensor> init = first_carries(first, over, title);
  const Device device = init.front().device();
  if (options.snapshots < 0)
    throw ValueError(
        fmt::format("{}: {} snapshots; give 0 (all carries are kept) or more", title, options.snapshots));
  const std::int64_t turns = turns_of(over, options.turns, title);
  // A slice of each, for its type.
  std::vector<LazyTensor> like = init;
  for (const LazyTensor& x : over)
    like.push_back(
        empty(Shape(Dims(std::span(x.shape().begin() + 1, x.shape().end()))), x.dtype(), x.device()));
  const std::size_t carries = init.size();
  std::size_t stacked = 0;
  const auto with_carries = [&](std::span<const LazyTensor> all) {
    ScanTurn turn = body(all.first(carries), all.subspan(carries));
    turn.carry = carries_after(std::move(turn.carry), init, title);
    stacked = turn.stacked.size();
    // The carries that the turn began with come last: gradients ask for those of all turns.
    return joined({turn.carry, turn.stacked, all.first(carries)});
  };
  Body traced(with_carries, like, title);
  if (turns == 0) {
    ScanTurn out{.carry = init};
    for (std::size_t i = 0; i < stacked; ++i) {
      const TensorType type = stacked_type_of(traced.results()[carries + i], 0);
      out.stacked.push_back(zeros(type.shape.get(), type.dtype, device));
    }
    return {.turn = std::move(out)};
  }
  const std::vector<LazyTensor> arguments = joined({init, over, traced.captured()});
  const auto loop = std::make_shared<const ScanLoop>(ScanLoop{.title = std::move(title),
                                                              .body = std::move(traced),
                                                              .carries = carries,
                                                              .over = over.size(),
                                                              .stacked = stacked,
                                                              .turns = turns,
                                                              .reverse = options.reverse,
                                                              .snapshots = options.snapshots});
  std::vector<LazyTensor> values = scan_results(loop, arguments);
  const auto end = values.begin() + static_cast<std::ptrdiff_t>(carries + stacked);
  std::vector<LazyTensor> kept(end, values.end());
  values.erase(end, values.end());
  return {.turn = split(std::move(values), carries), .kept = std::move(kept)};
}

}  // namespace

ScanTurn scan(const ScanBody& body, std::span<const LazyTensor> init, std::span<const LazyTensor> over,
              ScanOptions options) {
  return all_of_scan("scan", body, init, over, options).turn;
}

std::vector<LazyTensor> for_loop(
    std::int64_t turns,
    const std::function<std::vector<LazyTensor>(const LazyTensor& i, std::span<const LazyTensor> x)>& body,
    std::span<const LazyTensor> init, ForLoopOptions options) {
  check_callable(body, "for_loop");
  if (turns < 0) throw ValueError(fmt::format("for_loop: {} turns; give 0 or more", turns));
  check_defined(init, "for_loop", "carry");
  // The numbers are gone through, not counted up: gradients need no turn before to know them.
  const LazyTensor numbers = iota(Shape{turns}, 0, DType::i64, device_among(init));
  const auto turn = [&](std::span<const LazyTensor> carry, std::span<const LazyTensor> slices) {
    return ScanTurn{body(slices[0], carry)};
  };
  return all_of_scan("for_loop", turn, init, std::span(&numbers, 1), {.snapshots = options.snapshots})
      .turn.carry;
}

LazyTensor for_loop(std::int64_t turns,
                    const std::function<LazyTensor(const LazyTensor& i, const LazyTensor& x)>& body,
                    const LazyTensor& init, ForLoopOptions options) {
  check_callable(body, "for_loop");
  const std::function<std::vector<LazyTensor>(const LazyTensor&, std::span<const LazyTensor>)> all =
      [&](const LazyTensor& i, std::span<const LazyTensor> x) { return std::vector{body(i, x[0])}; };
  return for_loop(turns, all, std::span(&init, 1), options)[0];
}

}  // namespace caldera
