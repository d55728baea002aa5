#include "engine/graph/history/kept_history.h"

#include <atomic>
#include <mutex>

namespace caldera {
namespace {

struct Chain {
  KeptHistory* oldest = nullptr;
  KeptHistory* newest = nullptr;

  void append(KeptHistory& entry) {
    entry.older = newest;
    entry.newer = nullptr;
    (newest == nullptr ? oldest : newest->newer) = &entry;
    newest = &entry;
  }
  void unlink(const KeptHistory& entry) {
    (entry.older == nullptr ? oldest : entry.older->newer) = entry.newer;
    (entry.newer == nullptr ? newest : entry.newer->older) = entry.older;
  }
  void visit(const std::function<void(Node&)>& visit) const {
    for (const KeptHistory* entry = oldest; entry != nullptr; entry = entry->newer) visit(*entry->node);
  }
};

struct List {
  std::mutex mutex;  // guards the links alone
  Chain kept;
  Chain loose;  // optional values that nobody holds
  HistoryStats stats;
  std::atomic<std::size_t> loose_count{0};
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
  entry = {.node = &node, .nodes = nodes, .bytes = bytes};
  all.kept.append(entry);
  all.stats.histories += 1;
  all.stats.nodes += nodes;
  all.stats.bytes += bytes;
}

void HistoryList::add_optional(KeptHistory& entry, Node& node) {
  List& all = list();
  const std::scoped_lock lock(all.mutex);
  if (entry.node != nullptr) return;
  entry = {.node = &node, .is_optional = true};
  all.kept.append(entry);
}

void HistoryList::note_loose(KeptHistory& entry) {
  List& all = list();
  const std::scoped_lock lock(all.mutex);
  if (entry.node == nullptr || !entry.is_optional || entry.is_loose) return;
  all.kept.unlink(entry);
  entry.is_loose = true;
  all.loose.append(entry);
  all.loose_count.fetch_add(1, std::memory_order_relaxed);
}

void HistoryList::remove(KeptHistory& entry) {
  List& all = list();
  const std::scoped_lock lock(all.mutex);
  if (entry.node == nullptr) return;
  (entry.is_loose ? all.loose : all.kept).unlink(entry);
  if (entry.is_loose) all.loose_count.fetch_sub(1, std::memory_order_relaxed);
  if (!entry.is_optional) {
    all.stats.histories -= 1;
    all.stats.nodes -= entry.nodes;
    all.stats.bytes -= entry.bytes;
  }
  entry = {};
}

void HistoryList::for_each(const std::function<void(Node&)>& visit) {
  List& all = list();
  const std::scoped_lock lock(all.mutex);
  all.loose.visit(visit);
  all.kept.visit(visit);
}

bool HistoryList::has_loose() { return list().loose_count.load(std::memory_order_relaxed) > 0; }

void HistoryList::for_each_loose(const std::function<void(Node&)>& visit) {
  List& all = list();
  const std::scoped_lock lock(all.mutex);
  all.loose.visit(visit);
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
