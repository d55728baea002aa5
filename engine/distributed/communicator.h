// Communicator: what ranks do with memory of the host. Group (distributed.h) does it with tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/distributed/combine.h"
#include "engine/distributed/message_thread.h"
#include "engine/tensor/dtype.h"

namespace caldera::distributed {

/// Says by whom sums are made.
enum class SumOrder : std::uint8_t {
  fixed,  ///< in a fixed binary tree over the ranks: the same bits whatever the network
  fast    ///< by MPI's own collective, in an order of its choice
};

/// Returns the seconds that threads of this process have waited for messages so far.
double seconds_waited();

/// The ranks of a group. Every rank must ask for the same operations in the same order. What is passed must
/// live until the operation is complete. Threads: one at a time.
class Communicator {
 public:
  using Done = std::shared_ptr<Completion>;

  /// A rank by itself: nothing is sent.
  Communicator();
  Communicator(std::shared_ptr<MessageThread> thread, std::shared_ptr<RankSet> ranks);

  int rank() const { return ranks_->rank; }
  int size() const { return ranks_->size; }
  int id() const { return ranks_->id; }
  const std::shared_ptr<MessageThread>& thread() const { return thread_; }
  /// Collective: see Group::split.
  std::shared_ptr<Communicator> split(int color, int key) const;

  /// Combines `elements` of all ranks, in place.
  Done all_reduce(Combine combine, SumOrder order, DType type, void* data, std::int64_t elements);
  /// Combines size() parts of `elements` each; part rank() of the result goes to `to`.
  Done reduce_scatter(DType type, const void* from, void* to, std::int64_t elements);
  /// Puts the `bytes` of each rank one behind the other.
  Done all_gather(const std::string& what, const void* from, void* to, std::int64_t bytes);
  Done broadcast(const std::string& what, void* data, std::int64_t bytes, int root);
  Done send(const std::string& what, const void* data, std::int64_t bytes, int to);
  Done receive(const std::string& what, void* data, std::int64_t bytes, int from);

  /// Waits until all ranks are here.
  void barrier();
  /// Returns what each rank gives, which may differ in length.
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> own);
  std::vector<std::vector<double>> gather(std::span<const double> own);

 private:
  Done post(OperationName name, MessageThread::Work work);

  std::shared_ptr<MessageThread> thread_;
  std::shared_ptr<RankSet> ranks_;
};

}  // namespace caldera::distributed
