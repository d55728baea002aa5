// The list of nodes that have a value and keep what it was computed from (engine/graph/histories.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "engine/base/small_memory.h"

namespace caldera {

class Node;

/// A node's place in the list.
struct KeptHistory {
  Node* node = nullptr;  // null: in no list
  KeptHistory* older = nullptr;
  KeptHistory* newer = nullptr;
  std::size_t nodes = 0;     // of the graph that the history is, about: histories share nodes
  std::uint64_t bytes = 0;   // of data that only histories keep alive, about
  bool is_optional = false;  // the value was not asked for: it may go, and be computed again
  bool is_loose = false;     // in the list of those that may go now

  static void* operator new(std::size_t bytes) { return allocate_small(bytes); }
  static void operator delete(void* memory, std::size_t bytes) noexcept { free_small(memory, bytes); }
};

struct HistoryStats {
  std::size_t histories = 0;  // kept now
  std::size_t nodes = 0;
  std::uint64_t bytes = 0;  // of data that nobody else held when the values were computed
  std::uint64_t loose_bytes =
      0;  // of values that nobody holds any longer, and that are there for other nodes
};

/// The list, the oldest first. Thread-safe: a node leaves it before its memory goes, whichever thread drops
/// it.
class HistoryList {
 public:
  /// Appends `entry`, which is in no list, for `node`.
  static void add(KeptHistory& entry, Node& node, std::size_t nodes, std::uint64_t bytes);
  /// Adds the history of a value that was not requested. It counts for nothing: without the value its node
  /// would keep the same.
  static void add_optional(KeptHistory& entry, Node& node);
  /// Nobody holds the value of `entry` any longer. Does nothing but for an optional one.
  static void note_loose(KeptHistory& entry);
  static bool has_loose();
  /// for_each of optional values that nobody holds, or that are held again.
  static void for_each_loose(const std::function<void(Node&)>& visit);
  /// Does nothing for one that is in no list.
  static void remove(KeptHistory& entry);
  /// Calls `visit` with each node. None of them can leave meanwhile, though nobody may own it any longer.
  static void for_each(const std::function<void(Node&)>& visit);
  static HistoryStats stats();
  /// Adds to loose_bytes.
  static void count_loose(std::int64_t bytes);
};

}  // namespace caldera
