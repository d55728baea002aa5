#include "engine/control/reversal.h"

#include <algorithm>
#include <optional>

#include "engine/control/control_node.h"
#include "engine/control/derivatives.h"
#include "ops/core/arithmetic.h"
#include "ops/core/creation.h"

namespace caldera {
namespace {

void append(std::vector<LazyTensor>& to, std::span<const LazyTensor> more) {
  to.insert(to.end(), more.begin(), more.end());
}

}  // namespace

ReversedGradients reversed(const ReversedLoop& loop, std::span<const LazyTensor> carries,
                           std::span<const LazyTensor> stacked, std::span<const std::size_t> constants,
                           std::span<const std::size_t> over, std::string_view title) {
  const std::size_t c = loop.init.size(), x = loop.over.size(), k = loop.constants.size();
  const std::span<const LazyTensor> results = loop.body.results();
  const std::vector<std::size_t> floating = floating_among(loop.init);
  std::vector<std::size_t> given;  // stacked results with a cotangent
  for (std::size_t i = 0; i < stacked.size(); ++i) {
    if (stacked[i].defined()) given.push_back(i);
  }
  std::vector<std::size_t> targets = floating;
  for (const std::size_t i : constants) targets.push_back(c + x + i);
  for (const std::size_t i : over) targets.push_back(c + i);

  // Arguments of the turn back: the body's parameters, the cotangents' slices, the states.
  std::vector<LazyTensor> like(loop.body.parameters().begin(), loop.body.parameters().end());
  for (const std::size_t i : given) like.push_back(results[c + i]);
  append(like, carries);
  for (const std::size_t i : constants) like.push_back(loop.constants[i]);
  const std::size_t states = floating.size() + constants.size();
  const auto turn_back = [&](std::span<const LazyTensor> all) {
    const auto parameters = all.first(c + x + k);
    const auto slices = all.subspan(c + x + k, given.size());
    const auto state = all.subspan(c + x + k + given.size(), states);
    std::vector<LazyTensor> cotangents(results.size());
    for (std::size_t i = 0; i < floating.size(); ++i) cotangents[floating[i]] = state[i];
    for (std::size_t i = 0; i < given.size(); ++i) cotangents[c + given[i]] = slices[i];
    std::vector<LazyTensor> grads =
        pulled_back([&](auto values) { return loop.body(values); }, parameters, targets, cotangents, title);
    for (std::size_t i = 0; i < constants.size(); ++i)
      grads[floating.size() + i] = state[floating.size() + i] + grads[floating.size() + i];
    return grads;
  };
  const Body back(turn_back, like, title);

  Constants all_constants;
  const std::vector<std::uint32_t> of_body = all_constants.add(loop.constants);
  const std::vector<std::uint32_t> of_back = all_constants.add(back.captured());
  ControlLayout layout{.kind = ControlKind::reversal,
                       .is_backwards = loop.is_backwards,
                       .carries = static_cast<std::uint32_t>(c),
                       .slices = static_cast<std::uint32_t>(x + given.size()),
                       .constants = static_cast<std::uint32_t>(all_constants.tensors().size()),
                       .states = static_cast<std::uint32_t>(states),
                       .stacked = static_cast<std::uint32_t>(over.size()),
                       .turns = loop.turns,
                       .snapshots = loop.turns > 0 ? std::min(loop.snapshots, loop.turns) : loop.snapshots};
  const std::uint32_t first_constant = layout.carries + layout.slices;
  const std::uint32_t first_state = first_constant + layout.constants;
  const auto as_constants = [&](const std::vector<std::uint32_t>& at, std::vector<std::uint32_t>& to) {
    for (const std::uint32_t i : at) to.push_back(first_constant + i);
  };
  std::vector<std::uint32_t> forward = numbered(c + x);
  as_constants(of_body, forward);
  std::vector<std::uint32_t> backward = forward;
  for (std::size_t i = 0; i < given.size(); ++i)
    backward.push_back(layout.carries + static_cast<std::uint32_t>(x + i));
  for (std::uint32_t i = 0; i < layout.states; ++i) backward.push_back(first_state + i);
  as_constants(of_back, backward);

  std::vector<LazyTensor> inputs(loop.init.begin(), loop.init.end());
  append(inputs, loop.over);
  for (const std::size_t i : given) inputs.push_back(stacked[i]);
  append(inputs, all_constants.tensors());
  std::vector<LazyTensor> start(carries.begin(), carries.end());
  for (const std::size_t i : constants) start.push_back(zeros_like(loop.constants[i]));
  append(inputs, start);

  std::vector<TensorType> types;
  for (const LazyTensor& state : start) types.push_back(type_of(state));
  for (const std::size_t i : over) types.push_back(type_of(loop.over[i]));
  std::vector<BodyPart> parts{{&loop.body, forward, numbered(c)},
                              {&back, backward, numbered(states + over.size())}};
  std::optional<Body> copy;
  if (loop.turns < 0) {
    inputs.push_back(loop.turns_value);
    copy.emplace([](std::span<const LazyTensor> values) { return std::vector(values.begin(), values.end()); },
                 start, title);
    parts.push_back({&*copy, numbered(states, first_state), numbered(states)});
  }
  const std::vector<LazyTensor> out = control_results(title, layout, inputs, std::move(types), parts);
  const auto at = [&](std::size_t first, std::size_t count) {
    return std::vector(out.begin() + static_cast<std::ptrdiff_t>(first),
                       out.begin() + static_cast<std::ptrdiff_t>(first + count));
  };
  return {at(0, floating.size()), at(floating.size(), constants.size()), at(states, over.size())};
}

}  // namespace caldera
