#include "engine/graph/kept_history.h"

#include <atomic>
#include <mutex>

namespace caldera {
namespace {

struct List {
  std::mutex mutex;  // guards the links alone
  KeptHistory* oldest = nullptr;
  KeptHistory* newest = nullptr;
  HistoryStats stats;
  std::atomic<std::int64_t> loose_bytes{0};
};

List& list() {
  static auto* instance = new List;  // outlives every static tensor
  return *instance;
}

}  // namespace

void HistoryList::add(KeptHistory& entry, Node& node, std::size_t nodes, std::uint64_t bytes) {
  List& all = list();
  const std::scoped_lock lock(all.mutex);
  if (entry.node != nullptr) return;
  entry.node = &node;
  entry.older = all.newest;
  entry.newer = nullptr;
  entry.nodes = nodes;
  entry.bytes = bytes;
  (all.newest == nullptr ? all.oldest : all.newest->newer) = &entry;
  all.newest = &entry;
  all.stats.histories += 1;
  all.stats.nodes += nodes;
  all.stats.bytes += bytes;
}

void HistoryList::remove(KeptHistory& entry) {
  List& all = list();
  const std::scoped_lock lock(all.mutex);
  if (entry.node == nullptr) return;
  (entry.older == nullptr ? all.oldest : entry.older->newer) = entry.newer;
  (entry.newer == nullptr ? all.newest : entry.newer->older) = entry.older;
  all.stats.histories -= 1;
  all.stats.nodes -= entry.nodes;
  all.stats.bytes -= entry.bytes;
  entry = {};
}

void HistoryList::for_each(const std::function<void(Node&)>& visit) {
  List& all = list();
  const std::scoped_lock lock(all.mutex);
  for (const KeptHistory* entry = all.oldest; entry != nullptr; entry = entry->newer) visit(*entry->node);
}

void HistoryList::count_loose(std::int64_t bytes) {
  list().loose_bytes.fetch_add(bytes, std::memory_order_relaxed);
}

HistoryStats HistoryList::stats() {
  List& all = list();
  const std::scoped_lock lock(all.mutex);
  HistoryStats stats = all.stats;
  stats.loose_bytes = static_cast<std::uint64_t>(all.loose_bytes.load(std::memory_order_relaxed));
  return stats;
}

}  // namespace caldera
