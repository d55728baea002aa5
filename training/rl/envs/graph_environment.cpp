#include "training/rl/envs/graph_environment.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "engine/base/error.h"
#include "ops/core/creation.h"
#include "ops/core/slicing.h"
#include "ops/core/views.h"
#include "ops/shape/joining.h"
#include "training/rl/envs/classic.h"
#include "training/rl/envs/dynamics.h"

namespace caldera::rl {
namespace {

template <std::size_t kCount>
std::array<LazyTensor, kCount> columns_of(const LazyTensor& rows) {
  std::array<LazyTensor, kCount> columns;
  for (std::size_t i = 0; i < kCount; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    columns[i] = squeeze(slice(rows, 1, at, at + 1), 1);
  }
  return columns;
}

template <std::size_t kCount>
LazyTensor rows_of_columns(const std::array<LazyTensor, kCount>& columns) {
  return stack({columns.begin(), columns.end()}, 1);
}

template <class Dynamics>
LazyTensor begin_all(const LazyTensor& uniform) {
  return rows_of_columns(Dynamics::template begin<LazyTensor>(columns_of<Dynamics::kDraws>(uniform)));
}

template <class Dynamics>
GraphStep step_all(const LazyTensor& state, const LazyTensor& action) {
  auto columns = columns_of<Dynamics::kState>(state);
  const auto outcome = Dynamics::template advance<LazyTensor>(columns, action);
  // A reward that is one number for all is a scalar so far.
  const LazyTensor reward = outcome.reward + zeros_like(columns[0]);
  return {rows_of_columns(columns), reward, outcome.ended};
}

template <class Dynamics>
LazyTensor observe_all(const LazyTensor& state) {
  return rows_of_columns(Dynamics::template observe<LazyTensor>(columns_of<Dynamics::kState>(state)));
}

template <class Dynamics>
GraphEnvironment graph_of() {
  const detail::ClassicFacts& facts = *detail::find_classic(Dynamics::kName);
  return {facts.name,
          facts.observations,
          facts.actions,
          static_cast<std::int64_t>(Dynamics::kState),
          static_cast<std::int64_t>(Dynamics::kDraws),
          facts.steps,
          begin_all<Dynamics>,
          step_all<Dynamics>,
          observe_all<Dynamics>};
}

}  // namespace

const GraphEnvironment& find_graph_environment(std::string_view name) {
  static const std::vector<GraphEnvironment> kAll{
      graph_of<detail::CartPole>(), graph_of<detail::Pendulum>(), graph_of<detail::MountainCar>(),
      graph_of<detail::MountainCarContinuous>(), graph_of<detail::Acrobot>()};
  const auto found = std::ranges::find(kAll, name, &GraphEnvironment::name);
  if (found == kAll.end())
    throw ValueError("there is no environment '" + std::string(name) +
                     "' as graph operations; make_vector_environment() steps any on the host");
  return *found;
}

}  // namespace caldera::rl
