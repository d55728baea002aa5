// Lazy scalars: numbers that a thread has built and nobody has computed, as losses and running totals are.
// An evaluation that replaces what they need finds them here (engine/runtime/capture/totals.h).
#pragma once

#include <cstddef>
#include <vector>

#include "engine/base/small_memory.h"

namespace caldera {

class Node;

/// A node's place among those of its thread. It may leave from any thread.
class LazyScalar : public InSmallMemory<LazyScalar> {
 public:
  /// Enters, as the youngest of this thread's.
  explicit LazyScalar(Node& node);
  /// Leaves.
  ~LazyScalar();
  LazyScalar(const LazyScalar&) = delete;
  LazyScalar& operator=(const LazyScalar&) = delete;

  /// Calls visit(node) for those of this thread, the youngest first, until `most` of the calls gave true, or
  /// very many were made. None of them leaves meanwhile, though nobody may own it any longer: `visit` is
  /// called under a mutex, and must not make or drop nodes.
  template <class Visit>
  static void for_each_of_this_thread(std::size_t most, Visit visit) {
    struct Caller {
      static bool call(void* to, Node& node) { return (*static_cast<Visit*>(to))(node); }
    };
    visit_all(most, &Caller::call, &visit);
  }

 private:
  struct List;
  static List& list_of_this_thread();
  static void visit_all(std::size_t most, bool (*visit)(void*, Node&), void* to);

  Node* node_;
  List* list_;
  const void* thread_;
  LazyScalar* older_;
  LazyScalar* younger_ = nullptr;
};

}  // namespace caldera
