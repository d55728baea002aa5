#include "engine/graph/histories.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <mutex>
#include <span>

#include "engine/graph/origins_walk.h"

namespace caldera {
namespace {

thread_local int transforms_here = 0;
std::atomic<int> transforms{0};

bool are_too_many(const HistoryStats& stats) {
  return stats.histories > kMostHistories || stats.nodes > kMostHistoryNodes ||
         stats.bytes + stats.loose_bytes > kMostHistoryBytes;
}

/// So few remember what each of them came from; more what they came from all together, so that a long chain
/// of values does not remember as many lists as it has values.
constexpr std::size_t kFew = 64;

/// Cuts the nodes. Those that a job is yet to compute need their inputs should it fail.
void give_up(std::span<const NodePtr> nodes, std::vector<NodePtr>& bin) {
  std::vector<Node*> values;
  for (const NodePtr& node : nodes) {
    // What nobody asked for would keep its inputs without a value, too.
    if (!node->is_pending() && !node->is_optional_value()) values.push_back(node.get());
  }
  if (values.empty()) return;
  if (values.size() <= kFew) {
    const std::vector<OriginsPtr> origins = origins_of(values);
    for (std::size_t i = 0; i < values.size(); ++i) values[i]->cut(origins[i], bin);
    return;
  }
  const OriginsPtr origins = common_origins(values);
  for (Node* node : values) node->cut(origins, bin);
}

}  // namespace

KeepHistories::KeepHistories() {
  ++transforms_here;
  ++transforms;
}
KeepHistories::~KeepHistories() {
  --transforms_here;
  --transforms;
}
bool KeepHistories::is_active() { return transforms_here > 0; }

std::vector<NodePtr> kept_histories() {
  std::vector<NodePtr> nodes;
  HistoryList::for_each([&](Node& node) {
    if (node.add_ref_if_owned()) nodes.emplace_back(&node);
  });
  return nodes;
}

void drop_loose_values(std::vector<NodePtr>& bin) {
  if (!HistoryList::has_loose()) return;
  const std::size_t first = bin.size();
  HistoryList::for_each_loose([&](Node& node) {
    if (node.add_ref_if_owned()) bin.emplace_back(&node);
  });
  for (std::size_t i = first; i < bin.size(); ++i) {
    if (!bin[i]->is_pending() && !bin[i]->is_held()) bin[i]->drop_value();
  }
}

void bound_histories(std::vector<NodePtr>& bin) {
  const HistoryStats stats = history_stats();
  if (transforms.load() > 0 || stats.histories == 0 || !are_too_many(stats)) return;
  std::vector<NodePtr> nodes = kept_histories();
  give_up({nodes.data(), nodes.size() / 2}, bin);
  std::move(nodes.begin(), nodes.end(), std::back_inserter(bin));
}

bool give_up_histories() {
  std::vector<NodePtr> bin;  // released after the mutex
  const std::scoped_lock lock(graph_mutex());
  drop_loose_values(bin);
  if (transforms.load() > 0) return false;
  std::vector<NodePtr> nodes = kept_histories();
  give_up(nodes, bin);
  const bool gave_up = !bin.empty();
  std::move(nodes.begin(), nodes.end(), std::back_inserter(bin));
  return gave_up;
}

}  // namespace caldera
