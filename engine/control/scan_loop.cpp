#include "engine/control/scan_loop.h"

#include <utility>

#include "engine/autodiff/opaque_call.h"
#include "engine/control/control_node.h"
#include "engine/control/derivatives.h"
#include "engine/control/lists.h"
#include "engine/control/mapped_body.h"
#include "engine/control/reversal.h"
#include "ops/core/arithmetic.h"
#include "ops/core/creation.h"

namespace caldera {
namespace {

/// The arguments of a call, by what they are.
struct ScanArguments {
  std::span<const LazyTensor> init, over, listed, constants;
  std::size_t turns;

  ScanArguments(const ScanLoop& loop, std::span<const LazyTensor> all)
      : init(all.first(loop.carries)),
        over(all.subspan(loop.carries, loop.over)),
        listed(all.subspan(loop.carries + loop.over, loop.lists * loop.tensors_of_a_list())),
        constants(all.subspan(loop.carries + loop.over + listed.size())),
        turns(loop.tensors_of_a_list()) {}

  std::span<const LazyTensor> list(std::size_t l) const { return listed.subspan(l * turns, turns); }
  std::vector<std::vector<LazyTensor>> lists() const { return split_lists(listed, turns); }
};

/// The cotangents of what a call gives: of all floating carries; of the others, empty ones are zero.
struct Along {
  std::vector<LazyTensor> carries;
  std::span<const LazyTensor> stacked;  // those of the carries that turns began with among them
  std::span<const LazyTensor> listed;
};

/// What a gradient of a call asks for.
struct Wanted {
  std::vector<std::size_t> carries, constants, over, lists;  // numbers of those that are floating, and wanted

  std::vector<std::size_t> of_body(const ScanLoop& loop) const {
    std::vector<std::size_t> targets = carries;
    for (const std::size_t i : constants) targets.push_back(loop.carries + loop.over + loop.lists + i);
    for (const std::size_t i : over) targets.push_back(loop.carries + i);
    for (const std::size_t i : lists) targets.push_back(loop.carries + loop.over + i);
    return targets;
  }
};

/// The cotangents of what is wanted, in the order carries, constants, over, lists, from the carries of all
/// turns (`kept`): a scan the other way.
std::vector<LazyTensor> gradients_from_kept(const ScanLoop& loop, const ScanArguments& arguments,
                                            std::span<const LazyTensor> kept, const Along& along,
                                            const Wanted& wanted) {
  std::vector<LazyTensor> start = along.carries;
  for (const std::size_t i : wanted.constants) start.push_back(zeros_like(arguments.constants[i]));
  std::vector<LazyTensor> through = joined({kept, arguments.over});
  std::vector<std::size_t> given;  // results of the body behind its carries
  for (std::size_t i = 0; i < along.stacked.size(); ++i) {
    if (!along.stacked[i].defined()) continue;
    given.push_back(i);
    through.push_back(along.stacked[i]);
  }
  std::vector<std::vector<LazyTensor>> lists = arguments.lists();
  for (const GivenList& list : given_lists(along.listed, arguments.turns)) {
    given.push_back(along.stacked.size() + list.number);
    lists.push_back(list.tensors);
  }
  const std::size_t slices = through.size();
  const std::vector<std::size_t> targets = wanted.of_body(loop);
  const auto turn_back = [&](std::span<const LazyTensor> state, std::span<const LazyTensor> all) {
    const std::size_t own = loop.carries + loop.over;
    const std::vector<LazyTensor> parameters =
        joined({all.first(own), all.subspan(slices, loop.lists), arguments.constants});
    const std::vector<LazyTensor> cotangents_given =
        joined({all.subspan(own, slices - own), all.subspan(slices + loop.lists)});
    std::vector<LazyTensor> cotangents(loop.body.results().size());
    for (std::size_t i = 0; i < wanted.carries.size(); ++i) cotangents[wanted.carries[i]] = state[i];
    for (std::size_t i = 0; i < given.size(); ++i) cotangents[loop.carries + given[i]] = cotangents_given[i];
    const std::vector<LazyTensor> grads = pulled_back([&](auto values) { return loop.body(values); },
                                                      parameters, targets, cotangents, loop.title);
    ScanTurn turn;
    for (std::size_t i = 0; i < state.size(); ++i)
      turn.carry.push_back(i < wanted.carries.size() ? grads[i] : state[i] + grads[i]);
    const auto rest = std::span(grads).subspan(state.size());
    turn.stacked = joined({rest.first(wanted.over.size())});
    turn.listed = joined({rest.subspan(wanted.over.size())});
    return turn;
  };
  const ScanTurn back =
      all_of_scan("scan", turn_back, start, through,
                  {.turns = loop.turns, .reverse = !loop.reverse, .lists = std::move(lists)})
          .turn;
  return joined({back.carry, back.stacked, back.listed});
}

class ScanRule final : public ControlRule {
 public:
  explicit ScanRule(ScanLoopPtr loop) : ControlRule(loop->title), loop_(std::move(loop)) {}

  Cotangents pull_back(const Call& call, std::span<const LazyTensor> cotangents, const IsWanted& is_wanted,
                       std::string_view) const override {
    const ScanLoop& loop = *loop_;
    const ScanArguments arguments(loop, call.arguments);
    const auto wanted_of = [&](std::span<const LazyTensor> tensors) {
      std::vector<std::size_t> numbers;
      for (const std::size_t i : floating_among(tensors)) {
        if (is_wanted(tensors[i])) numbers.push_back(i);
      }
      return numbers;
    };
    Wanted wanted{
        floating_among(arguments.init), wanted_of(arguments.constants), wanted_of(arguments.over), {}};
    for (std::size_t l = 0; l < loop.lists; ++l) {
      if (!wanted_of(arguments.list(l)).empty()) wanted.lists.push_back(l);
    }
    Along along{.carries = {},
                .stacked = cotangents.subspan(loop.carries, loop.stacked_results()),
                .listed = cotangents.subspan(loop.carries + loop.stacked_results())};
    for (const std::size_t i : wanted.carries)
      along.carries.push_back(cotangents[i].defined() ? cotangents[i] : zeros_like(call.values[i]));
    const std::vector<LazyTensor> results = results_of(call.node, call.values);
    const auto kept = std::span(results).subspan(loop.carries + loop.stacked, loop.carries);
    const std::vector<LazyTensor> grads = loop.snapshots > 0 && loop.turns > 1
                                              ? with_snapshots(call, along, wanted)
                                              : gradients_from_kept(loop, arguments, kept, along, wanted);
    Cotangents out;
    std::size_t next = 0;
    for (const std::size_t i : wanted.carries) out.emplace_back(arguments.init[i], grads[next++]);
    for (const std::size_t i : wanted.constants) out.emplace_back(arguments.constants[i], grads[next++]);
    for (const std::size_t i : wanted.over) out.emplace_back(arguments.over[i], grads[next++]);
    for (const std::size_t l : wanted.lists) {
      for (const LazyTensor& x : arguments.list(l)) {
        if (is_wanted(x)) out.emplace_back(x, grads[next]);
        ++next;
      }
    }
    return out;
  }

  /// A scan over values and tangents.
  std::vector<LazyTensor> push_forward(const Call& call, std::span<const LazyTensor> tangents,
                                       std::string_view transform) const override {
    const ScanLoop& loop = *loop_;
    const ScanArguments arguments(loop, call.arguments);
    const ScanArguments along(loop, tangents);
    const std::vector<std::size_t> floating = floating_among(loop.body.results());
    std::vector<LazyTensor> start = joined({arguments.init}), through = joined({arguments.over}),
                            of_constants;
    std::vector<std::vector<LazyTensor>> lists = arguments.lists();
    std::vector<std::size_t> targets = floating_among(arguments.init);  // of the body
    for (const std::size_t i : targets)
      start.push_back(along.init[i].defined() ? along.init[i] : zeros_like(arguments.init[i]));
    for (std::size_t i = 0; i < loop.over; ++i) {
      if (!along.over[i].defined()) continue;
      targets.push_back(loop.carries + i);
      through.push_back(along.over[i]);
    }
    for (const GivenList& list : given_lists(along.listed, arguments.turns)) {
      targets.push_back(loop.carries + loop.over + list.number);
      lists.push_back(list.tensors);
    }
    for (std::size_t i = 0; i < arguments.constants.size(); ++i) {
      if (!along.constants[i].defined()) continue;
      targets.push_back(loop.carries + loop.over + loop.lists + i);
      of_constants.push_back(along.constants[i]);
    }
    const std::size_t slices = through.size();
    const auto turn = [&](std::span<const LazyTensor> carry, std::span<const LazyTensor> all) {
      const auto primals = joined({carry.first(loop.carries), all.first(loop.over),
                                   all.subspan(slices, loop.lists), arguments.constants});
      const auto tangents_given =
          joined({carry.subspan(loop.carries), all.subspan(loop.over, slices - loop.over),
                  all.subspan(slices + loop.lists), of_constants});
      const std::vector<LazyTensor> both =
          with_tangents([&](auto values) { return loop.body(values); }, primals, targets, tangents_given,
                        floating, transform);
      const std::span<const LazyTensor> results(both);
      const std::size_t own = loop.body.results().size(), first_listed = own - loop.listed;
      ScanTurn out;
      out.carry = joined({results.first(loop.carries)});
      out.stacked = joined({results.subspan(loop.carries, loop.stacked)});
      out.listed = joined({results.subspan(first_listed, loop.listed)});
      for (std::size_t i = 0; i < floating.size(); ++i) {
        auto& group = floating[i] < loop.carries   ? out.carry
                      : floating[i] < first_listed ? out.stacked
                                                   : out.listed;
        group.push_back(results[own + i]);
      }
      return out;
    };
    const ScanTurn both =
        all_of_scan(
            "scan", turn, start, through,
            {.turns = loop.turns, .reverse = loop.reverse, .snapshots = loop.snapshots, .lists = lists})
            .turn;
    std::vector<LazyTensor> out(call.values.size());
    std::size_t of_carries = loop.carries, of_stacked = loop.stacked,
                of_listed = loop.listed * arguments.turns;
    const std::size_t first_listed = loop.carries + loop.stacked_results();
    for (const std::size_t k : floating) {
      if (k < loop.carries) {
        out[k] = both.carry[of_carries++];
      } else if (k < first_listed) {
        out[k] = both.stacked[of_stacked++];
      } else {
        for (std::size_t t = 0; t < arguments.turns; ++t)
          out[first_listed + (k - first_listed) * arguments.turns + t] = both.listed[of_listed++];
      }
    }
    return out;
  }

  /// A scan over all examples.
  std::vector<Batched> mapped_results(std::span<const Batched> arguments,
                                      std::int64_t examples) const override {
    const ScanLoop& loop = *loop_;
    const std::size_t turns = loop.tensors_of_a_list();
    const std::size_t first_list = loop.carries + loop.over;
    const auto constants = arguments.subspan(first_list + loop.lists * turns);
    std::vector<bool> is_mapped = which_mapped(arguments.first(first_list));  // by parameter of the body
    std::vector<std::vector<LazyTensor>> lists =
        placed_lists(arguments.subspan(first_list, loop.lists * turns), turns, examples, is_mapped);
    for (const Batched& x : constants) is_mapped.push_back(x.is_mapped);
    mark_carried(loop.body, is_mapped, 0, loop.carries);
    std::vector<LazyTensor> over;
    for (const Batched& x : arguments.subspan(loop.carries, loop.over)) over.push_back(turns_in_front(x));
    const std::size_t first_listed = loop.carries + loop.stacked_results();
    std::vector<bool> is_mapped_result;
    const auto turn = [&](std::span<const LazyTensor> carry, std::span<const LazyTensor> slices) {
      std::vector<Batched> parameters = flagged(joined({carry, slices}), is_mapped);
      parameters.insert(parameters.end(), constants.begin(), constants.end());
      const std::vector<Batched> results = mapped_body(loop.body, parameters);
      is_mapped_result = which_mapped(results);
      ScanTurn out{.carry = placed(std::span(results).first(loop.carries), is_mapped, examples)};
      for (std::size_t i = 0; i < loop.stacked; ++i) out.stacked.push_back(results[loop.carries + i].value);
      for (std::size_t i = 0; i < loop.listed; ++i) out.listed.push_back(results[first_listed + i].value);
      return out;
    };
    const AllOfScan all =
        all_of_scan(loop.title, turn, placed(arguments.first(loop.carries), is_mapped, examples), over,
                    {.turns = loop.turns,
                     .reverse = loop.reverse,
                     .snapshots = loop.snapshots,
                     .lists = std::move(lists)});
    std::vector<Batched> out = flagged(all.turn.carry, is_mapped);
    for (std::size_t i = 0; i < loop.stacked; ++i)
      out.push_back(examples_in_front(all.turn.stacked[i], is_mapped_result[loop.carries + i]));
    for (std::size_t i = 0; i < loop.carries; ++i)
      out.push_back(examples_in_front(all.kept[i], is_mapped[i]));
    for (std::size_t i = 0; i < all.turn.listed.size(); ++i)
      out.push_back({all.turn.listed[i], is_mapped_result[first_listed + i / turns]});
    return out;
  }

 private:
  std::vector<LazyTensor> with_snapshots(const Call& call, const Along& along, const Wanted& wanted) const {
    const std::size_t own = call.arguments.size(), carries = along.carries.size();
    std::vector<LazyTensor> defined;
    std::vector<bool> has;
    for (const auto group : {along.stacked, along.listed}) {
      for (const LazyTensor& x : group) {
        has.push_back(x.defined());
        if (x.defined()) defined.push_back(x);
      }
    }
    // Of all that the call of the gradient is given: the cotangents of what is stacked and listed.
    const auto given_among = [own, carries, has](std::span<const LazyTensor> all) {
      std::vector<LazyTensor> given(has.size());
      std::size_t next = own + carries;
      for (std::size_t i = 0; i < has.size(); ++i) {
        if (has[i]) given[i] = all[next++];
      }
      return given;
    };
    const auto computed = [loop = loop_, own, carries, given_among, wanted](std::span<const LazyTensor> all) {
      const ScanArguments arguments(*loop, all.first(own));
      const std::vector<LazyTensor> given = given_among(all);
      const auto groups = std::span(given);
      return reversal_of({.body = loop->body,
                          .init = arguments.init,
                          .over = arguments.over,
                          .listed = arguments.listed,
                          .constants = arguments.constants,
                          .turns = loop->turns,
                          .is_backwards = loop->reverse,
                          .snapshots = loop->snapshots},
                         {all.subspan(own, carries), groups.first(loop->stacked_results()),
                          groups.subspan(loop->stacked_results())},
                         {wanted.constants, wanted.over, wanted.lists}, loop->title)
          .results();
    };
    // Differentiated again, all carries are kept.
    const auto equivalent = [loop = loop_, own, carries, given_among,
                             wanted](std::span<const LazyTensor> all) {
      const std::vector<LazyTensor> forward = scan_results(loop, all.first(own));
      const std::vector<LazyTensor> given = given_among(all);
      const auto kept = std::span(forward).subspan(loop->carries + loop->stacked, loop->carries);
      const auto groups = std::span(given);
      return gradients_from_kept(*loop, ScanArguments(*loop, all.first(own)), kept,
                                 {.carries = joined({all.subspan(own, carries)}),
                                  .stacked = groups.first(loop->stacked_results()),
                                  .listed = groups.subspan(loop->stacked_results())},
                                 wanted);
    };
    return differentiated_as(loop_->title, computed, equivalent,
                             joined({call.arguments, along.carries, defined}));
  }

  ScanLoopPtr loop_;
};

}  // namespace

std::vector<LazyTensor> scan_results(const ScanLoopPtr& loop, std::span<const LazyTensor> all) {
  const Body& body = loop->body;
  const ScanArguments arguments(*loop, all);
  const auto count = [](std::size_t n) { return static_cast<std::uint32_t>(n); };
  const ControlLayout layout{.kind = ControlKind::loop,
                             .is_backwards = loop->reverse,
                             .carries = count(loop->carries),
                             .slices = count(loop->over),
                             .constants = count(arguments.constants.size()),
                             .lists = count(loop->lists),
                             .stacked = count(loop->stacked_results()),
                             .listed = count(loop->listed),
                             .turns = loop->turns};
  std::vector<TensorType> types;
  for (const LazyTensor& x : arguments.init) types.push_back(type_of(x));
  const std::size_t first_listed = loop->carries + loop->stacked_results();
  for (std::size_t i = loop->carries; i < first_listed; ++i)
    types.push_back(stacked_type_of(body.results()[i], loop->turns));
  for (std::size_t i = first_listed; i < body.results().size(); ++i)
    types.insert(types.end(), arguments.turns, type_of(body.results()[i]));
  BodyPart part{&body, numbered(loop->carries + loop->over), numbered(body.results().size())};
  const auto bind = [&](std::size_t parameters, std::uint32_t first) {
    for (const std::uint32_t p : numbered(parameters, first)) part.parameters.push_back(p);
  };
  bind(loop->lists, layout.first_list());
  bind(arguments.constants.size(), layout.carries + layout.slices);
  const std::vector<LazyTensor> values = control_results(
      loop->title, layout, joined({arguments.init, arguments.over, arguments.constants, arguments.listed}),
      std::move(types), std::span(&part, 1));
  return results_of(make_call(std::make_shared<ScanRule>(loop), all, values), values);
}

}  // namespace caldera
