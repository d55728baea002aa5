// MessageThread: the one thread of a process that calls MPI. What others ask for waits in a queue, so that
// messages go on while they compute, and idle ranks sleep instead of spinning.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/distributed/mpi/mpi_interface.h"
#include "engine/distributed/roll_call.h"

namespace caldera::distributed {

class MessageThread;

/// A communicator as the thread knows it.
struct RankSet {
  int id = 0;  ///< of the library
  int rank = 0;
  int size = 1;
  std::uint64_t operations = 0;  ///< that it has begun
  std::shared_ptr<RollCall> roll_call = std::make_shared<RollCall>();
};

/// Says for people what an operation is, "all_sum of 10 float32"; ranks compare it.
using OperationName = std::string;

/// A message between two ranks, which goes on beside the operations of all: requests, and what is to be done
/// when all of them are.
struct PairMessage {
  std::vector<int> requests;
  std::function<void()> check;  ///< throws where the other rank meant something else
};

/// Runs an operation, on the thread: what it waits with.
class MessageRun {
 public:
  MessageRun(MessageThread& thread, RankSet& ranks, const OperationName& name);
  ~MessageRun();
  MessageRun(const MessageRun&) = delete;
  MessageRun& operator=(const MessageRun&) = delete;

  const CalderaMpi& mpi() const;
  const RankSet& ranks() const { return ranks_; }
  /// Returns memory number `which`, not set, that lives as long as MPI may use it: for ever, where the
  /// operation failed; else until it is asked for again, or the end.
  std::byte* memory(std::size_t which, std::int64_t bytes);
  /// Waits for a request, asleep. Throws Error where it failed, took too long, or the rank before this one is
  /// about to run another operation.
  void wait(int request);
  /// Waits until the rank before this one has said what it runs.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;

  void announce();
  void look_at_neighbour();
  [[noreturn]] void fail();
  void check_time();
  int next() const { return (ranks_.rank + 1) % ranks_.size; }
  int previous() const { return (ranks_.rank + ranks_.size - 1) % ranks_.size; }

  MessageThread& thread_;
  RankSet& ranks_;
  const OperationName& name_;
  Clock::time_point begin_ = Clock::now(), looked_ = begin_;
  struct Announcement;
  std::unique_ptr<Announcement> own_, of_previous_;
  struct Memory {
    std::unique_ptr<std::byte[]> data;
    std::int64_t bytes = 0;
  };
  std::vector<Memory> memory_;
  bool has_asked_ = false;
  int sent_ = -1, received_ = -1;
  bool is_complete_ = false;
};

/// The end of an operation, for who asked for it.
class Completion {
 public:
  /// Returns once it is done. Throws what went wrong.
  void wait();
  /// Waits for so many seconds at most; 0: as long as it takes. Returns whether it is done.
  bool wait_for(double seconds);
  /// Counts the nanoseconds that all waits of the process took.
  static std::int64_t nanoseconds_waited();

 private:
  friend class MessageThread;
  void set(std::exception_ptr error);

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_done_ = false;
  std::exception_ptr error_;
};

class MessageThread {
 public:
  using Work = std::function<void(MessageRun& run)>;

  explicit MessageThread(const CalderaMpi& mpi);
  /// Starts MPI, before anything else. Throws Error where that fails. Returns false where other ranks have
  /// not come to it after so many seconds (0: they may take any time): the thread is within MPI then, and
  /// this must never be destroyed.
  bool start(double seconds);
  ~MessageThread();
  /// Finishes what was asked for, and MPI: what is asked for later fails. Called once, or by the destructor.
  void finish();
  MessageThread(const MessageThread&) = delete;
  MessageThread& operator=(const MessageThread&) = delete;

  const CalderaMpiPlace& place() const { return place_; }
  const std::shared_ptr<RankSet>& all() const { return all_; }
  const std::string& name() const { return name_; }

  /// Runs `work` behind all that was asked for before, as an operation of these ranks.
  std::shared_ptr<Completion> post(std::shared_ptr<RankSet> ranks, OperationName name, Work work);
  /// Begins a message between two ranks behind all that was asked for before. What follows does not wait for
  /// it.
  std::shared_ptr<Completion> post_pair(OperationName name, std::function<PairMessage()> begin);
  /// Waits for ranks that give the same color; a new set of them.
  std::shared_ptr<RankSet> split(const RankSet& ranks, int color, int key);
  /// Says how long an operation may take; 0: as long as it likes.
  void set_timeout(double seconds) { timeout_ = seconds; }
  double timeout() const { return timeout_; }
  const CalderaMpi& mpi() const { return mpi_; }
  /// Ends the processes of all ranks, this one too.
  [[noreturn]] void end_all(int code);

 private:
  struct Task {
    std::shared_ptr<RankSet> ranks;  // null: work on the thread, which no other rank is asked about
    OperationName name;
    Work work;
    std::function<void()> plain;
    std::function<PairMessage()> pair;
    std::shared_ptr<Completion> done;
  };
  struct OpenPair {
    PairMessage message;
    OperationName name;
    std::shared_ptr<Completion> done;
    std::chrono::steady_clock::time_point begin;
  };

  void run();
  void run(Task& task);
  void call(std::function<void()> plain);
  /// Looks at the messages between two ranks.
  void look_at_pairs();
  bool is_done(OpenPair& pair) const;
  std::shared_ptr<Completion> push(Task task);

  const CalderaMpi& mpi_;
  CalderaMpiPlace place_{0, 1, 0, 1};
  std::shared_ptr<RankSet> all_ = std::make_shared<RankSet>();
  std::string name_;
  std::atomic<double> timeout_ = 0;
  std::atomic<int> ending_ = -1;  // the code to end all processes with
  std::exception_ptr failed_;     // what ended the messages: all that follow fail alike
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Task> tasks_;
  std::vector<OpenPair> pairs_;                        // the thread's own
  std::vector<std::shared_ptr<RollCall>> roll_calls_;  // that listen: the thread's own
  bool is_started_ = false;                            // the thread's own
  bool stopping_ = false;
  bool is_finished_ = false;
  std::thread thread_;
  friend class MessageRun;
};

}  // namespace caldera::distributed
