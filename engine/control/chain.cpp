#include "engine/control/chain.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "engine/autodiff/argument_checks.h"
#include "engine/autodiff/checkpoint/checkpoint.h"
#include "engine/autodiff/snapshot.h"
#include "engine/control/body.h"
#include "engine/control/scan.h"
#include "engine/graph/tracing/tracing.h"
#include "ops/core/node_builder.h"

namespace caldera {
namespace {

constexpr const char* kChain = "chain";

/// A function of one tensor, and what tells it from others.
struct Link {
  Body body;
  Hash128 hash;
  std::vector<LazyTensor> numbers;
  bool stays = true;  // on one device

  explicit Link(Body traced) : body(std::move(traced)) {
    const Device device = body.parameters()[0].device();
    for (const Snapshot::Entry& entry :
         take_snapshot(body.results(), body.parameters(), Targets::end_walk).entries) {
      const Node& node = entry.tensor.node();
      if (!node.is_scalar_leaf() && !node.is_call() && entry.tensor.device() != device) stays = false;
      // A rule may know more than its title says.
      if (node.is_call()) hash.mix(reinterpret_cast<std::uintptr_t>(node.call_rule().get()));
    }
    if (stays) (void)body.part(numbered(1), numbered(body.parameters().size()), numbers, hash);
  }

  const LazyTensor& result() const { return body.results()[0]; }
  bool keeps_type() const {
    const LazyTensor& x = body.parameters()[0];
    return x.shape() == result().shape() && x.dtype() == result().dtype();
  }
};

bool is_same_number(const LazyTensor& a, const LazyTensor& b) {
  if (a.node_id() == b.node_id()) return true;
  if (is_argument_number(a.node()) || is_argument_number(b.node())) return false;
  return a.dtype() == b.dtype() &&
         std::ranges::equal(a.node().attributes().values(), b.node().attributes().values());
}

bool are_alike(const Link& a, const Link& b) {
  // Equal hashes stand for equal graphs, leaf for leaf.
  return a.stays && b.stays && a.keeps_type() && b.keeps_type() && a.hash == b.hash &&
         a.body.captured().size() == b.body.captured().size() &&
         std::ranges::equal(a.numbers, b.numbers, is_same_number);
}

/// Turns of so many functions each.
struct Group {
  std::size_t period = 1;
  std::size_t turns = 1;
};

/// The repetition that takes most of the links from the first on.
Group longest_group(std::span<const Link> links) {
  Group best;
  for (std::size_t period = 1; 2 * period <= links.size(); ++period) {
    std::size_t length = period;
    while (length < links.size() && are_alike(links[length - period], links[length])) ++length;
    const std::size_t turns = length / period;
    if (turns >= 2 && turns * period > best.turns * best.period) best = {period, turns};
  }
  return best;
}

LazyTensor run_link(const Link& link, const LazyTensor& x, std::span<const LazyTensor> captured) {
  std::vector<LazyTensor> values{x};
  values.insert(values.end(), captured.begin(), captured.end());
  return link.body(values)[0];
}

LazyTensor run_group(std::span<const Link> links, const Group& group, const LazyTensor& x,
                     const ChainOptions& options) {
  if (group.turns == 1) {
    const UnaryFunction function = [link = links[0]](const LazyTensor& y) {
      return run_link(link, y, link.body.captured());
    };
    return options.checkpointed ? checkpoint(function)(x) : function(x);
  }
  ScanOptions scan_options{.turns = static_cast<std::int64_t>(group.turns), .snapshots = options.snapshots};
  std::vector<std::vector<LazyTensor>>& lists = scan_options.lists;
  // By link of a turn and captured tensor: its list, or that all turns have the same.
  constexpr std::size_t kSame = SIZE_MAX;
  std::vector<std::vector<std::size_t>> list_of(group.period);
  for (std::size_t j = 0; j < group.period; ++j) {
    for (std::size_t c = 0; c < links[j].body.captured().size(); ++c) {
      std::vector<LazyTensor> list;
      list.reserve(group.turns);
      for (std::size_t t = 0; t < group.turns; ++t)
        list.push_back(links[t * group.period + j].body.captured()[c]);
      const bool is_same =
          std::ranges::all_of(list, [&](const LazyTensor& y) { return y.node_id() == list[0].node_id(); });
      list_of[j].push_back(is_same ? kSame : lists.size());
      if (!is_same) lists.push_back(std::move(list));
    }
  }
  const auto turn = [&](std::span<const LazyTensor> carry, std::span<const LazyTensor> slices) {
    LazyTensor y = carry[0];
    for (std::size_t j = 0; j < group.period; ++j) {
      std::vector<LazyTensor> captured;
      captured.reserve(list_of[j].size());
      for (std::size_t c = 0; c < list_of[j].size(); ++c)
        captured.push_back(list_of[j][c] == kSame ? links[j].body.captured()[c] : slices[list_of[j][c]]);
      y = run_link(links[j], y, captured);
    }
    return ScanTurn{{y}};
  };
  return scan(turn, std::span(&x, 1), {}, scan_options).carry[0];
}

}  // namespace

LazyTensor chain(std::span<const UnaryFunction> functions, const LazyTensor& x, ChainOptions options) {
  check_defined(std::span(&x, 1), kChain, "argument");
  if (functions.empty()) return x;
  LazyTensor y = ops::anchored(x, x.device());
  std::vector<Link> links;
  links.reserve(functions.size());
  for (const UnaryFunction& function : functions) {
    check_callable(function, kChain);
    const LazyTensor like = links.empty() ? y : links.back().result();
    const auto call = [&](std::span<const LazyTensor> values) { return std::vector{function(values[0])}; };
    links.emplace_back(Body(call, std::span(&like, 1), kChain));
  }
  for (std::span<const Link> rest = links; !rest.empty();) {
    const Group group = longest_group(rest);
    y = run_group(rest, group, y, options);
    rest = rest.subspan(group.turns * group.period);
  }
  return y;
}

}  // namespace caldera
