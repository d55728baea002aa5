// Distributed: tensors of several processes that mpirun or srun has started, <caldera/distributed.h>.
//
//   const distributed::Group group = distributed::init();     // of all ranks; of one without mpirun
//   LazyTensor total = distributed::all_sum(gradient, group);  // a node of the graph like any other
//
// Messages are steps of plans: they go on while the steps that do not read their results compute. Every rank
// must evaluate the same messages of a group in the same order, one evaluation at a time; ranks compare what
// they are about to run, and where it differs the evaluation throws an Error that names both operations.
// In a group of one rank all functions return what they get, and nothing comes into the graph.
//
// Gradients are those of the sum of all ranks' outputs: that of all_sum is all_sum, that of all_gather is
// reduce_scatter, and so on. All ranks of the group must differentiate alike.
#pragma once

#include <memory>

#include "engine/distributed/communicator.h"
#include "engine/graph/default_device.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera::distributed {

struct InitOptions {
  /// Seconds that an operation waits for the other ranks before it throws an Error that names the one that
  /// does not come, and that MPI may take to start; 0: for ever.
  double timeout = 0;
};

/// A handle to ranks that work together. Copies are the same group.
class Group {
 public:
  /// Makes a group of this process alone.
  Group();
  explicit Group(std::shared_ptr<Communicator> ranks) : ranks_(std::move(ranks)) {}

  int rank() const { return ranks_->rank(); }
  int size() const { return ranks_->size(); }
  /// Returns the group of those ranks that give the same color, ordered by key, then by rank. Collective.
  Group split(int color, int key = 0) const { return Group(ranks_->split(color, key)); }
  /// Waits until all ranks are here.
  void barrier() const { ranks_->barrier(); }
  /// Exchanges memory of the host.
  Communicator& ranks() const { return *ranks_; }

 private:
  std::shared_ptr<Communicator> ranks_;
};

/// Says whether mpirun or srun has started several processes.
bool is_launched();
/// Returns the rank that it gave this one; 0 without.
int launched_rank();

/// Tells whether MPI was started; and returns this process's rank where it was, else 0.
bool is_started();
int started_rank();

/// Returns the group of all ranks that mpirun or srun started, of one where neither did. The first call
/// starts MPI. Throws Error where its library cannot be opened.
Group init(const InitOptions& options = {});
/// Returns this process's number among those of its machine, and how many they are. Starts MPI as init().
int local_rank();
int local_size();
/// Names the implementation of MPI; empty without one.
std::string mpi_name();
/// Ends the processes of all ranks, this one too, at once.
[[noreturn]] void end_all(int code);
/// Waits for what is under way and ends MPI; further messages are errors. A program that leaves main()
/// without it may be reported by its launcher as one that failed, and the other ranks be ended.
void finish();

/// Returns the sum over ranks of tensors of one shape and dtype, on every rank. Booleans and integers
/// narrower than i32 are summed as i32; f16 and bf16 as f32, rounded once.
LazyTensor all_sum(const LazyTensor& x, const Group& group = init(), SumOrder order = SumOrder::fixed);
/// Return the largest or smallest of each element; a NaN wins. The gradient is shared by equal ones.
LazyTensor all_max(const LazyTensor& x, const Group& group = init());
LazyTensor all_min(const LazyTensor& x, const Group& group = init());
/// Returns the tensors of all ranks joined along the first axis, in order of rank; of scalars a vector.
LazyTensor all_gather(const LazyTensor& x, const Group& group = init());
/// Returns this rank's part, of size() equal ones along the first axis, of the sum over ranks. Throws
/// ShapeError unless that axis can be divided.
LazyTensor reduce_scatter(const LazyTensor& x, const Group& group = init());
/// Returns the tensor of rank `root`, whose shape and dtype those of the others must have.
LazyTensor broadcast(const LazyTensor& x, int root, const Group& group = init());
/// Sends x to a rank, once its result, which is x, is evaluated.
LazyTensor send(const LazyTensor& x, int to, const Group& group = init());
/// Returns what rank `from` sends, of this shape and dtype.
LazyTensor recv(const Shape& shape, DType dtype, int from, const Group& group = init(),
                Device device = default_device());
/// Returns the same, like `x` in shape, dtype and device. Its gradient goes to the rank that sent, where a
/// gradient with respect to `x`, which is 0, is evaluated.
LazyTensor recv_like(const LazyTensor& x, int from, const Group& group = init());

}  // namespace caldera::distributed
