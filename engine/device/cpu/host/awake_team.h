// AwakeTeam: threads that spin for a while between two pieces of work.
#pragma once

#include <atomic>

namespace caldera::cpu {

/// Threads of the process that run pieces of the CPU device's work. They spin for a millisecond after each,
/// so that the next steps of a token find them awake, and sleep then. A piece that no thread has begun is run
/// by the caller: it waits only for threads that have begun one, not for those that another process keeps
/// from their core.
class AwakeTeam {
 public:
  /// Counts the pieces that run() takes at most.
  static constexpr int kMostPieces = 32;
  using Piece = void (*)(const void* body, int piece);

  /// Calls piece(body, i) for each i < pieces, at most so many at a time, and returns once all have returned.
  /// The pieces must not throw. One caller at a time (Team sees to it).
  static void run(int pieces, Piece piece, const void* body);

  /// Says whether run() is the better way now. OpenBLAS has threads of its own, which spin as well: while
  /// both do, they take each other's cores, so that after its last work of several threads all goes to
  /// OpenMP's for a while.
  static bool is_better();
  /// Is called when OpenBLAS is about to use several threads: those of this team go to sleep.
  static void rest();
  /// Says whether the calling thread runs a piece.
  static bool is_inside();
};

}  // namespace caldera::cpu
