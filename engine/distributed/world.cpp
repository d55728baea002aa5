// The processes that were started together.
#include <fmt/format.h>
#include <unistd.h>

#include <mutex>
#include <string>

#include "engine/base/error.h"
#include "engine/distributed/distributed.h"
#include "engine/distributed/launch.h"
#include "engine/distributed/open_mpi.h"

namespace caldera::distributed {
namespace {

struct World {
  std::mutex mutex;
  bool is_finished = false;
  std::string problem;  // with which MPI did not start
  std::shared_ptr<MessageThread> thread;
  std::shared_ptr<Communicator> ranks;
};

World& world() {
  static World instance;
  return instance;
}

std::shared_ptr<Communicator> started(const InitOptions* options) {
  World& w = world();
  const std::scoped_lock lock(w.mutex);
  if (w.ranks == nullptr) {
    const Launch launch = launch_of_environment();
    if (launch.size == 1 || w.is_finished) {
      w.ranks = std::make_shared<Communicator>();
    } else {
      if (!w.problem.empty()) throw Error(w.problem);
      const double limit = options != nullptr ? options->timeout : 0;
      auto thread = std::make_unique<MessageThread>(open_mpi(launch.mpi));
      if (!thread->start(limit)) {
        (void)thread.release();  // it is within MPI
        w.problem = fmt::format(
            "{} processes were started, and not all of them started MPI within {:g} s: all must run the same "
            "program; one of them may have ended",
            launch.size, limit);
        throw Error(w.problem);
      }
      w.thread = std::move(thread);
      if (w.thread->place().size != launch.size)
        throw Error(
            fmt::format("{} processes were started, but {} sees {}: start them with its own mpirun, or "
                        "name the MPI that started them with CALDERA_MPI=openmpi|mpich",
                        launch.size, w.thread->name(), w.thread->place().size));
      w.ranks = std::make_shared<Communicator>(w.thread, w.thread->all());
    }
  }
  if (options != nullptr && w.thread != nullptr && options->timeout > 0)
    w.thread->set_timeout(options->timeout);
  return w.ranks;
}

}  // namespace

Group::Group() : ranks_(std::make_shared<Communicator>()) {}

int launched_rank() { return launch_of_environment().rank; }

bool is_launched() { return launch_of_environment().size > 1; }

bool is_started() {
  const std::scoped_lock lock(world().mutex);
  return world().thread != nullptr;
}

int started_rank() {
  const std::scoped_lock lock(world().mutex);
  return world().ranks != nullptr ? world().ranks->rank() : 0;
}

Group init(const InitOptions& options) { return Group(started(&options)); }

int local_rank() {
  const auto ranks = started(nullptr);
  return ranks->thread() != nullptr ? ranks->thread()->place().local_rank : 0;
}

int local_size() {
  const auto ranks = started(nullptr);
  return ranks->thread() != nullptr ? ranks->thread()->place().local_size : 1;
}

std::string mpi_name() {
  const auto ranks = started(nullptr);
  return ranks->thread() != nullptr ? ranks->thread()->name() : std::string();
}

void end_all(int code) {
  std::shared_ptr<MessageThread> thread;
  {
    const std::scoped_lock lock(world().mutex);
    thread = world().thread;
  }
  if (thread == nullptr) _exit(code);
  thread->end_all(code);
}

void finish() {
  World& w = world();
  std::shared_ptr<MessageThread> thread;
  {
    const std::scoped_lock lock(w.mutex);
    if (w.thread == nullptr) return;
    thread = std::move(w.thread);
    w.is_finished = true;
  }
  thread->finish();
}

}  // namespace caldera::distributed
