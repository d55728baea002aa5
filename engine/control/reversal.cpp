#include "engine/control/reversal.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "engine/autodiff/opaque_call.h"
#include "engine/base/error.h"
#include "engine/control/control_node.h"
#include "engine/control/derivatives.h"
#include "engine/control/lists.h"
#include "engine/control/mapped_body.h"
#include "ops/core/arithmetic.h"
#include "ops/core/comparison.h"
#include "ops/core/creation.h"
#include "ops/reduce/extrema.h"

namespace caldera {
namespace {

void append(std::vector<LazyTensor>& to, std::span<const LazyTensor> more) {
  to.insert(to.end(), more.begin(), more.end());
}

/// The reversal of values and tangents, of a loop whose count of turns is not known: it has no lists.
ReversalCall with_tangents_of(const ReversalPtr& reversal, std::span<const LazyTensor> arguments,
                              std::span<const LazyTensor> tangents, std::string_view transform) {
  const Reversal& r = *reversal;
  const ReversalArguments of(r, arguments);
  const ReversalArguments along(r, tangents);
  std::vector<LazyTensor> all;
  /// Appends a group and the tangents of its floating ones.
  const auto both = [&](std::span<const LazyTensor> values, std::span<const LazyTensor> own) {
    std::vector<LazyTensor> group(values.begin(), values.end());
    for (const std::size_t i : floating_among(values))
      group.push_back(own[i].defined() ? own[i] : zeros_like(values[i]));
    return group;
  };
  const std::vector<LazyTensor> carries = both(of.carries, along.carries);
  const std::vector<LazyTensor> slices = both(of.slices, along.slices);
  const std::vector<LazyTensor> states = both(of.states, along.states);
  const std::vector<LazyTensor> of_advance = both(of.of_advance, along.of_advance);
  const std::vector<LazyTensor> of_back = both(of.of_back, along.of_back);
  /// Runs `body` on groups that were made by both(), with tangents.
  const auto run = [&](const Body& body,
                       std::initializer_list<std::pair<std::span<const LazyTensor>, std::size_t>> groups) {
    std::vector<LazyTensor> primals, given;
    for (const auto& [group, count] : groups) {
      append(primals, group.first(count));
      append(given, group.subspan(count));
    }
    return with_tangents([&](auto values) { return body(values); }, primals, floating_among(primals), given,
                         floating_among(body.results()), transform);
  };
  const std::size_t own_results = r.states + r.stacked;
  const auto advance = [&](std::span<const LazyTensor> x) {
    return run(r.advance, {{x.first(carries.size()), r.carries},
                           {x.subspan(carries.size(), slices.size()), r.slices},
                           {of_advance, of.of_advance.size()}});
  };
  const auto back = [&](std::span<const LazyTensor> x) {
    const auto own = x.first(carries.size() + slices.size());
    std::vector<LazyTensor> out = run(r.back, {{own.first(carries.size()), r.carries},
                                               {own.subspan(carries.size()), r.slices},
                                               {x.subspan(own.size()), r.states},
                                               {of_back, of.of_back.size()}});
    // States with their tangents first, then stacked results with theirs.
    const std::size_t more = states.size() - r.states;
    std::rotate(out.begin() + static_cast<std::ptrdiff_t>(r.states),
                out.begin() + static_cast<std::ptrdiff_t>(own_results),
                out.begin() + static_cast<std::ptrdiff_t>(own_results + more));
    return out;
  };
  std::vector<LazyTensor> like = carries;
  for (const LazyTensor& x : slices) like.push_back(slice_like(x));
  Body advance_body(advance, like, r.title);
  append(like, states);
  Body back_body(back, like, r.title);
  const std::size_t stacked = back_body.results().size() - states.size();
  ReversalCall call{.reversal = {}, .arguments = carries};
  append(call.arguments, slices);
  append(call.arguments, states);
  append(call.arguments, advance_body.captured());
  append(call.arguments, back_body.captured());
  if (r.turns < 0) call.arguments.push_back(arguments.back());
  call.reversal = std::make_shared<const Reversal>(Reversal{.title = r.title,
                                                            .advance = std::move(advance_body),
                                                            .back = std::move(back_body),
                                                            .carries = carries.size(),
                                                            .slices = slices.size(),
                                                            .states = states.size(),
                                                            .stacked = stacked,
                                                            .turns = r.turns,
                                                            .is_backwards = r.is_backwards,
                                                            .snapshots = r.snapshots,
                                                            .as_loops = r.as_loops});
  return call;
}

/// The reversal of all examples, and which of its states and stacked results are mapped.
struct MappedReversal {
  ReversalCall call;
  std::vector<bool> is_mapped;
};

MappedReversal mapped_of(const Reversal& r, std::span<const Batched> arguments, std::int64_t examples) {
  const std::size_t own = r.carries + r.slices + r.lists;  // of the parameters of a body
  auto rest = arguments;
  const auto take = [&](std::size_t count) {
    const auto taken = rest.first(count);
    rest = rest.subspan(count);
    return taken;
  };
  const auto given_carries = take(r.carries), given_slices = take(r.slices);
  const auto given_listed = take(r.lists * r.tensors_of_a_list());
  const auto given_states = take(r.states);
  const auto of_advance = take(r.advance.captured().size()), of_back = take(r.back.captured().size());
  // Examples may end apart. Then a count of turns goes round, and behind its own end an example keeps what it
  // has.
  const bool ends_apart = r.turns < 0 && arguments.back().is_mapped;

  const auto flags_of = [](std::initializer_list<std::span<const Batched>> groups) {
    std::vector<bool> flags;
    for (const auto group : groups) {
      for (const Batched& x : group) flags.push_back(x.is_mapped);
    }
    return flags;
  };
  std::vector<bool> forward = flags_of({given_carries, given_slices});
  const std::vector<std::vector<LazyTensor>> lists =
      placed_lists(given_listed, r.tensors_of_a_list(), examples, forward);
  std::vector<bool> backward = forward;
  const auto add = [](std::vector<bool>& flags, const std::vector<bool>& more) {
    flags.insert(flags.end(), more.begin(), more.end());
  };
  add(forward, flags_of({of_advance}));
  add(backward, flags_of({given_states, of_back}));
  mark_carried(r.advance, forward, 0, r.carries);
  if (ends_apart) std::fill_n(forward.begin(), r.carries, true);
  std::copy_n(forward.begin(), r.carries, backward.begin());
  if (ends_apart) std::fill_n(backward.begin() + static_cast<std::ptrdiff_t>(own), r.states, true);
  mark_carried(r.back, backward, own, r.states);

  const std::size_t carries = r.carries + (ends_apart ? 1 : 0);
  const LazyTensor turns = r.turns < 0 ? arguments.back().value : LazyTensor();
  /// The parameters of a body from what its turn is given: carries, slices, states.
  const auto parameters_of = [&](std::span<const LazyTensor> all, std::span<const Batched> constants) {
    std::vector<LazyTensor> values(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(r.carries));
    append(values, all.subspan(carries));
    std::vector<Batched> parameters = flagged(values, backward);
    parameters.insert(parameters.end(), constants.begin(), constants.end());
    return parameters;
  };
  const auto kept_behind_the_end = [&](std::vector<LazyTensor>& next, std::span<const LazyTensor> before,
                                       const LazyTensor& turn) {
    const LazyTensor goes = turn < turns;
    for (std::size_t i = 0; i < before.size(); ++i) next[i] = chosen_by(goes, next[i], before[i]);
  };
  const auto advance = [&](std::span<const LazyTensor> all) {
    std::vector<LazyTensor> next =
        placed(mapped_body(r.advance, parameters_of(all, of_advance)), forward, examples);
    if (!ends_apart) return next;
    kept_behind_the_end(next, all.first(r.carries), all[r.carries]);
    next.push_back(all[r.carries] + 1);
    return next;
  };
  std::vector<bool> is_mapped_result;
  const auto back = [&](std::span<const LazyTensor> all) {
    const std::vector<Batched> results = mapped_body(r.back, parameters_of(all, of_back));
    is_mapped_result = which_mapped(results);
    std::copy_n(backward.begin() + static_cast<std::ptrdiff_t>(own), r.states, is_mapped_result.begin());
    std::vector<LazyTensor> next = placed(results, is_mapped_result, examples);
    if (ends_apart) kept_behind_the_end(next, all.subspan(carries + r.slices), all[r.carries]);
    return next;
  };
  std::vector<LazyTensor> like = placed(given_carries, forward, examples), slices;
  if (ends_apart) like.push_back(zeros({}, DType::i64, like.front().device()));
  ReversalCall call{.reversal = {}, .arguments = like};
  for (const Batched& x : given_slices) slices.push_back(turns_in_front(x));
  for (const LazyTensor& x : slices) like.push_back(slice_like(x));
  for (const std::vector<LazyTensor>& list : lists) like.push_back(list[0]);
  const std::vector<LazyTensor> states = placed(given_states, backward, examples, own);
  Body advance_body(advance, like, r.title);
  append(like, states);
  Body back_body(back, like, r.title);
  append(call.arguments, slices);
  for (const std::vector<LazyTensor>& list : lists) append(call.arguments, list);
  append(call.arguments, states);
  append(call.arguments, advance_body.captured());
  append(call.arguments, back_body.captured());
  if (ends_apart)
    call.arguments.push_back(examples > 0 ? max(turns) : zeros({}, DType::i64, turns.device()));
  else if (r.turns < 0)
    call.arguments.push_back(turns);
  call.reversal = std::make_shared<const Reversal>(Reversal{.title = r.title,
                                                            .advance = std::move(advance_body),
                                                            .back = std::move(back_body),
                                                            .carries = carries,
                                                            .slices = r.slices,
                                                            .lists = r.lists,
                                                            .states = r.states,
                                                            .stacked = r.stacked,
                                                            .listed = r.listed,
                                                            .turns = r.turns,
                                                            .is_backwards = r.is_backwards,
                                                            .snapshots = r.snapshots,
                                                            .as_loops = r.as_loops});
  return {std::move(call), std::move(is_mapped_result)};
}

class ReversalRule final : public ControlRule {
 public:
  explicit ReversalRule(ReversalPtr reversal)
      : ControlRule(reversal->title), reversal_(std::move(reversal)) {}

  Cotangents pull_back(const Call& call, std::span<const LazyTensor> cotangents, const IsWanted&,
                       std::string_view transform) const override {
    const Reversal& r = *reversal_;
    // Others are within calls that are differentiated as something else.
    if (r.as_loops == nullptr) throw PlanError(r.title + ": a reversal of known turns on its own");
    return cotangents_by([&](auto arguments) { return r.as_loops(r, arguments); }, call, cotangents,
                         transform);
  }

  std::vector<LazyTensor> push_forward(const Call& call, std::span<const LazyTensor> tangents,
                                       std::string_view transform) const override {
    const std::vector<LazyTensor> both =
        with_tangents_of(reversal_, call.arguments, tangents, transform).results();
    const std::vector<std::size_t> floating = floating_among(call.values);
    const std::size_t states = reversal_->states;
    std::vector<LazyTensor> out(call.values.size());
    // States, their tangents, stacked results, their tangents.
    std::size_t of_states = states;
    std::size_t of_stacked = call.values.size() + static_cast<std::size_t>(std::ranges::count_if(
                                                      floating, [&](std::size_t k) { return k < states; }));
    for (const std::size_t k : floating) out[k] = both[k < states ? of_states++ : of_stacked++];
    return out;
  }

  std::vector<Batched> mapped_results(std::span<const Batched> arguments,
                                      std::int64_t examples) const override {
    const Reversal& r = *reversal_;
    const MappedReversal mapped = mapped_of(r, arguments, examples);
    const std::vector<LazyTensor> results = mapped.call.results();
    std::vector<Batched> out;
    for (std::size_t k = 0; k < results.size(); ++k) {
      const std::size_t first_listed = r.states + r.stacked;
      if (k >= first_listed) {
        const std::size_t list = (k - first_listed) / r.tensors_of_a_list();
        out.push_back({results[k], mapped.is_mapped[first_listed + list]});
      } else {
        out.push_back(k < r.states ? Batched{results[k], mapped.is_mapped[k]}
                                   : examples_in_front(results[k], mapped.is_mapped[k]));
      }
    }
    return out;
  }

 private:
  ReversalPtr reversal_;
};

}  // namespace

ReversalArguments::ReversalArguments(const Reversal& reversal, std::span<const LazyTensor> all) {
  const auto take = [&](std::size_t count) {
    const auto taken = all.first(count);
    all = all.subspan(count);
    return taken;
  };
  carries = take(reversal.carries);
  slices = take(reversal.slices);
  listed = take(reversal.lists * reversal.tensors_of_a_list());
  states = take(reversal.states);
  of_advance = take(reversal.advance.captured().size());
  of_back = take(reversal.back.captured().size());
}

std::vector<LazyTensor> ReversalCall::values() const {
  const Reversal& r = *reversal;
  const ReversalArguments of(r, arguments);
  Constants constants;
  const std::vector<std::uint32_t> of_advance = constants.add(of.of_advance);
  const std::vector<std::uint32_t> of_back = constants.add(of.of_back);
  const ControlLayout layout{.kind = ControlKind::reversal,
                             .is_backwards = r.is_backwards,
                             .carries = static_cast<std::uint32_t>(r.carries),
                             .slices = static_cast<std::uint32_t>(r.slices),
                             .constants = static_cast<std::uint32_t>(constants.tensors().size()),
                             .states = static_cast<std::uint32_t>(r.states),
                             .lists = static_cast<std::uint32_t>(r.lists),
                             .stacked = static_cast<std::uint32_t>(r.stacked),
                             .listed = static_cast<std::uint32_t>(r.listed),
                             .turns = r.turns,
                             .snapshots = r.turns > 0 ? std::min(r.snapshots, r.turns) : r.snapshots};
  const std::uint32_t first_constant = layout.carries + layout.slices;
  const std::uint32_t first_state = first_constant + layout.constants;
  std::vector<std::uint32_t> forward = numbered(first_constant);
  for (std::uint32_t l = 0; l < layout.lists; ++l) forward.push_back(layout.first_list() + l);
  std::vector<std::uint32_t> backward = forward;
  for (const std::uint32_t i : of_advance) forward.push_back(first_constant + i);
  for (std::uint32_t i = 0; i < layout.states; ++i) backward.push_back(first_state + i);
  for (const std::uint32_t i : of_back) backward.push_back(first_constant + i);

  std::vector<LazyTensor> inputs(of.carries.begin(), of.carries.end());
  append(inputs, of.slices);
  append(inputs, constants.tensors());
  append(inputs, of.states);
  append(inputs, of.listed);
  std::vector<TensorType> types;
  for (const LazyTensor& state : of.states) types.push_back(type_of(state));
  const auto given_back = r.back.results().subspan(r.states);
  for (std::size_t k = 0; k < r.stacked; ++k) types.push_back(stacked_type_of(given_back[k], r.turns));
  for (std::size_t k = 0; k < r.listed; ++k)
    types.insert(types.end(), layout.tensors_of_a_list(), type_of(given_back[r.stacked + k]));
  std::vector<BodyPart> parts{{&r.advance, forward, numbered(r.carries)},
                              {&r.back, backward, numbered(r.states + r.stacked + r.listed)}};
  std::optional<Body> copy;
  if (r.turns < 0) {
    inputs.push_back(arguments.back());
    copy.emplace([](std::span<const LazyTensor> values) { return std::vector(values.begin(), values.end()); },
                 of.states, r.title);
    parts.push_back({&*copy, numbered(r.states, first_state), numbered(r.states)});
  }
  return control_results(r.title, layout, inputs, std::move(types), parts);
}

std::vector<LazyTensor> ReversalCall::results() const {
  const std::vector<LazyTensor> all = values();
  return results_of(make_call(std::make_shared<ReversalRule>(reversal), arguments, all), all);
}

ReversalCall reversal_of(const LoopToReverse& loop, const CotangentsOfLoop& along,
                         const TargetsOfLoop& targets, std::string title) {
  const std::size_t c = loop.init.size(), x = loop.over.size();
  const std::size_t turns = loop.turns < 0 ? 0 : static_cast<std::size_t>(loop.turns);
  const std::span<const LazyTensor> results = loop.body.results();
  const std::vector<std::size_t> floating = floating_among(loop.init);
  const std::size_t own_lists = loop.listed.empty() ? 0 : loop.listed.size() / turns;
  std::vector<std::size_t> given;  // results behind the carries that have a cotangent: stacked, listed
  std::vector<LazyTensor> slices(loop.over.begin(), loop.over.end());
  for (std::size_t i = 0; i < along.stacked.size(); ++i) {
    if (!along.stacked[i].defined()) continue;
    given.push_back(i);
    slices.push_back(along.stacked[i]);
  }
  std::vector<std::vector<LazyTensor>> lists = split_lists(loop.listed, turns);
  for (const GivenList& list : given_lists(along.listed, turns)) {
    given.push_back(along.stacked.size() + list.number);
    lists.push_back(list.tensors);
  }
  std::vector<std::size_t> wanted = floating;  // parameters of the body
  for (const std::size_t i : targets.constants) wanted.push_back(c + x + own_lists + i);
  for (const std::size_t i : targets.over) wanted.push_back(c + i);
  for (const std::size_t i : targets.lists) wanted.push_back(c + x + i);

  ReversalCall call;
  call.arguments.assign(loop.init.begin(), loop.init.end());
  append(call.arguments, slices);
  for (const std::vector<LazyTensor>& list : lists) append(call.arguments, list);
  std::vector<LazyTensor> like(loop.init.begin(), loop.init.end());
  for (const LazyTensor& slice : slices) like.push_back(slice_like(slice));
  for (const std::vector<LazyTensor>& list : lists) like.push_back(list[0]);
  const std::size_t first_list = c + slices.size(), first_state = first_list + lists.size();
  const auto parameters_of = [&](std::span<const LazyTensor> all) {
    std::vector<LazyTensor> parameters(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(c + x));
    append(parameters, all.subspan(first_list, own_lists));
    append(parameters, loop.constants);
    return parameters;
  };
  Body advance(
      [&](std::span<const LazyTensor> all) {
        std::vector<LazyTensor> next = loop.body(parameters_of(all));
        next.resize(c);
        return next;
      },
      like, title);
  append(like, along.carries);
  append(call.arguments, along.carries);
  for (const std::size_t i : targets.constants) {
    like.push_back(loop.constants[i]);
    call.arguments.push_back(zeros_like(loop.constants[i]));
  }
  Body back(
      [&](std::span<const LazyTensor> all) {
        std::vector<LazyTensor> own(all.begin() + static_cast<std::ptrdiff_t>(c + x),
                                    all.begin() + static_cast<std::ptrdiff_t>(first_list));
        append(own, all.subspan(first_list + own_lists, lists.size() - own_lists));
        const auto state = all.subspan(first_state);
        std::vector<LazyTensor> cotangents(results.size());
        for (std::size_t i = 0; i < floating.size(); ++i) cotangents[floating[i]] = state[i];
        for (std::size_t i = 0; i < given.size(); ++i) cotangents[c + given[i]] = own[i];
        std::vector<LazyTensor> grads = pulled_back([&](auto values) { return loop.body(values); },
                                                    parameters_of(all), wanted, cotangents, title);
        for (std::size_t i = floating.size(); i < state.size(); ++i) grads[i] = state[i] + grads[i];
        return grads;
      },
      like, title);
  append(call.arguments, advance.captured());
  append(call.arguments, back.captured());
  if (loop.turns < 0) call.arguments.push_back(loop.turns_value);
  call.reversal =
      std::make_shared<const Reversal>(Reversal{.title = std::move(title),
                                                .advance = std::move(advance),
                                                .back = std::move(back),
                                                .carries = c,
                                                .slices = slices.size(),
                                                .lists = lists.size(),
                                                .states = along.carries.size() + targets.constants.size(),
                                                .stacked = targets.over.size(),
                                                .listed = targets.lists.size(),
                                                .turns = loop.turns,
                                                .is_backwards = loop.is_backwards,
                                                .snapshots = loop.snapshots,
                                                .as_loops = loop.as_loops});
  return call;
}

}  // namespace caldera
