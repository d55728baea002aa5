#include "engine/compile/order/early_exchanges.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "engine/compile/order/step_graph.h"
#include "engine/graph/host_exchange.h"
#include "engine/plan/dependencies.h"

namespace caldera {
namespace {

bool is_exchange(const Step& step) {
  const HostExchange* const exchange = exchange_of(step);
  return exchange != nullptr && exchange->is_early();
}

/// For each step, how many exchanges lie at most on a path to it.
std::vector<std::uint32_t> exchanges_before(const Plan& plan, const StepGraph& graph) {
  std::vector<std::uint32_t> before(plan.steps.size(), 0);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {  // their order is one of the graph
    const std::uint32_t here = before[s] + (is_exchange(plan.steps[s]) ? 1 : 0);
    for (const std::uint32_t next : graph.successors[s]) before[next] = std::max(before[next], here);
  }
  return before;
}

/// Which steps give nothing but what exchanges send: what puts several tensors into one, say.
std::vector<bool> feeders_of(const Plan& plan, const StepGraph& graph) {
  std::vector<bool> feeds(plan.steps.size(), false);
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const auto next = graph.successors[s];
    feeds[s] = !is_exchange(plan.steps[s]) && !next.empty() &&
               std::ranges::all_of(next, [&](std::uint32_t to) { return is_exchange(plan.steps[to]); });
  }
  return feeds;
}

}  // namespace

void order_exchanges(Plan& plan) {
  std::map<int, std::vector<std::uint64_t>> numbers;  // of each queue
  for (const Step& step : plan.steps)
    if (const HostExchange* const exchange = exchange_of(step))
      numbers[exchange->queue()].push_back(exchange->number());
  bool is_in_order = true;
  for (auto& [queue, of_queue] : numbers) {
    is_in_order = is_in_order && std::ranges::is_sorted(of_queue);
    std::ranges::sort(of_queue, std::greater());  // the next is the last
  }
  if (is_in_order) return;

  std::vector<std::uint32_t> waits(plan.steps.size(), 0);
  std::vector<std::vector<std::uint32_t>> next(plan.steps.size());
  for (const auto& [from, to] : dependencies_of(plan)) {
    next[from].push_back(to);
    ++waits[to];
  }
  std::set<std::uint32_t> ready;                           // by the place that they have
  std::set<std::pair<std::uint64_t, std::uint32_t>> held;  // exchanges whose turn it is not, by number
  const auto add = [&](std::uint32_t s) {
    const HostExchange* const exchange = exchange_of(plan.steps[s]);
    if (exchange != nullptr && numbers[exchange->queue()].back() != exchange->number())
      held.emplace(exchange->number(), s);
    else
      ready.insert(s);
  };
  for (std::uint32_t s = 0; s < waits.size(); ++s)
    if (waits[s] == 0) add(s);
  std::vector<std::uint32_t> order;
  while (!ready.empty() || !held.empty()) {
    std::uint32_t s = 0;
    if (!ready.empty()) {
      s = *ready.begin();
      ready.erase(ready.begin());
    } else {  // a step computes for one and waits for a later one: theirs is the only order
      s = held.begin()->second;
      held.erase(held.begin());
    }
    order.push_back(s);
    if (const HostExchange* const exchange = exchange_of(plan.steps[s])) {
      std::vector<std::uint64_t>& of_queue = numbers[exchange->queue()];
      of_queue.erase(std::ranges::find(of_queue, exchange->number()));
      const auto waiting = std::exchange(held, {});
      for (const auto& [number, step] : waiting) add(step);
    }
    for (const std::uint32_t to : next[s])
      if (--waits[to] == 0) add(to);
  }
  put_in_order(plan, order);
}

void move_exchanges_up(Plan& plan) {
  if (std::ranges::none_of(plan.steps, is_exchange)) return;
  const StepGraph graph(plan);
  const std::vector<std::uint32_t> before = exchanges_before(plan, graph);
  const std::vector<bool> feeds = feeders_of(plan, graph);
  std::vector<std::uint32_t> order(plan.steps.size());
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  std::ranges::stable_sort(order, {}, [&](std::uint32_t s) { return before[s]; });
  const auto must_precede = [&](std::uint32_t first, std::uint32_t second) {
    return std::ranges::find(graph.successors[first], second) != graph.successors[first].end();
  };
  for (std::size_t at = 0; at < order.size(); ++at) {
    const std::uint32_t s = order[at];
    const bool exchanges = is_exchange(plan.steps[s]);
    if (!exchanges && !feeds[s]) continue;
    std::size_t to = at;
    while (to > 0 && !must_precede(order[to - 1], s) &&
           !(exchanges && is_exchange(plan.steps[order[to - 1]])))
      --to;
    std::rotate(order.begin() + static_cast<std::ptrdiff_t>(to),
                order.begin() + static_cast<std::ptrdiff_t>(at),
                order.begin() + static_cast<std::ptrdiff_t>(at + 1));
  }
  put_in_order(plan, order);
}

}  // namespace caldera
