#include "engine/distributed/message_thread.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <utility>

#include "engine/base/error.h"

namespace caldera::distributed {
namespace {

/// Of messages between two ranks, which say what an operation is: communicator.cpp and roll_call.cpp have
/// others.
constexpr int kAnnouncementTag = 1;

/// How long a test that said "not yet" lets the core go: short waits end soon, long ones cost nothing.
class Backoff {
 public:
  void pause() {
    if (tests_ < kYields) {
      ++tests_;
      std::this_thread::yield();
      return;
    }
    std::this_thread::sleep_for(nap_);
    nap_ = std::min(nap_ * 2, kLongest);
  }

 private:
  static constexpr int kYields = 20;
  static constexpr std::chrono::microseconds kLongest{400};
  int tests_ = 0;
  std::chrono::microseconds nap_{20};
};

}  // namespace

// ---- one operation ----

struct MessageRun::Announcement {
  std::uint64_t number = 0;
  std::array<char, 120> text{};
};

MessageRun::MessageRun(MessageThread& thread, RankSet& ranks, const OperationName& name)
    : thread_(thread), ranks_(ranks), name_(name) {
  ++ranks.operations;
  if (ranks.size > 1) announce();
}

MessageRun::~MessageRun() {
  if (is_complete_) return;
  // Requests are open after an error, and MPI is about to be ended.
  (void)own_.release();
  (void)of_previous_.release();
  for (Memory& memory : memory_) (void)memory.data.release();
}

std::byte* MessageRun::memory(std::size_t which, std::int64_t bytes) {
  if (memory_.size() <= which) memory_.resize(which + 1);
  Memory& memory = memory_[which];
  if (memory.data == nullptr || memory.bytes < bytes) {
    memory.data.reset(new std::byte[static_cast<std::size_t>(std::max<std::int64_t>(1, bytes))]);
    memory.bytes = bytes;
  }
  return memory.data.get();
}

const CalderaMpi& MessageRun::mpi() const { return thread_.mpi(); }

void MessageRun::announce() {
  own_ = std::make_unique<Announcement>();
  of_previous_ = std::make_unique<Announcement>();
  own_->number = ranks_.operations;
  name_.copy(own_->text.data(), own_->text.size() - 1);
  received_ =
      mpi().receive(ranks_.id, of_previous_.get(), sizeof(Announcement), previous(), kAnnouncementTag);
  sent_ = mpi().send(ranks_.id, own_.get(), sizeof(Announcement), next(), kAnnouncementTag);
}

void MessageRun::look_at_neighbour() {
  const auto test = [&](int& request) {
    if (request < 0) return;
    const int done = mpi().test(request);
    if (done < 0) throw Error(fmt::format("rank {}: {} failed: {}", ranks_.rank, name_, mpi().error()));
    if (done > 0) request = -1;
  };
  test(sent_);
  if (received_ < 0) return;
  test(received_);
  if (received_ >= 0) return;
  of_previous_->text.back() = '\0';
  if (of_previous_->number == own_->number && std::strcmp(of_previous_->text.data(), own_->text.data()) == 0)
    return;
  throw Error(fmt::format(
      "ranks differ in what they run: operation {} of rank {} is {}, operation {} of rank {} is {}; "
      "every rank must run the same program on tensors of the same types",
      own_->number, ranks_.rank, name_, of_previous_->number, previous(), of_previous_->text.data()));
}

/// Where ranks run different operations, those may break one another before what they are is known.
void MessageRun::fail() {
  constexpr std::chrono::seconds kForOthers{2};
  const std::string problem = mpi().error();
  const Clock::time_point begin = Clock::now();
  Backoff backoff;
  while (thread_.ending_ < 0 && Clock::now() - begin < kForOthers) {
    look_at_neighbour();
    backoff.pause();
  }
  throw Error(fmt::format("rank {}: {} failed: {}", ranks_.rank, name_, problem));
}

/// The rank behind the one that does not come need not know who it is: the one before it may wait, within an
/// operation before, for another that stalls. So those that are there tell one another, and who says nothing
/// is named. Who waits answers from the beginning: it may have begun later than who asks.
void MessageRun::check_time() {
  using Seconds = std::chrono::duration<double>;
  constexpr Seconds kBetweenWords{0.05}, kForAnswers{0.5}, kForAll{2};
  const Seconds limit{thread_.timeout()};
  if (limit.count() <= 0) return;
  const Clock::time_point now = Clock::now();
  if (now - looked_ < kBetweenWords) return;
  looked_ = now;
  RollCall& call = *ranks_.roll_call;
  if (call.listen(mpi(), ranks_.id, ranks_.rank, ranks_.size))
    thread_.roll_calls_.push_back(ranks_.roll_call);
  call.hear();
  if (now - begin_ <= limit) return;
  if (std::exchange(has_asked_, true))
    call.ask_again();
  else
    call.begin();
  const std::vector<int> silent = call.silent();
  const bool is_previous_late = received_ >= 0;
  const bool is_previous_alone = silent == std::vector<int>{previous()};
  if (now - begin_ <= limit + (is_previous_late && is_previous_alone ? kForAnswers : kForAll)) return;
  const std::string took = fmt::format("{} was not done within {:g} s", name_, limit.count());
  constexpr const char* kHint = "(--timeout sets how long ranks wait for one another)";
  if (silent.empty())
    throw Error(fmt::format("{}: all ranks are there, but not what they send {}", took, kHint));
  if (is_previous_alone && !is_previous_late)
    throw Error(
        fmt::format("{}: rank {} came to it and stalled, stopped or lost {}", took, previous(), kHint));
  throw Error(fmt::format("{} {} did not come to {} within {:g} s{}: stopped, lost, or still computing {}",
                          silent.size() == 1 ? "rank" : "ranks", fmt::join(silent, ", "), name_,
                          limit.count(), is_previous_late ? "" : ", or stalled within it", kHint));
}

void MessageRun::wait(int request) {
  if (request < 0) fail();
  Backoff backoff;
  while (true) {
    const int done = mpi().test(request);
    if (done < 0) fail();
    look_at_neighbour();
    thread_.look_at_pairs();
    if (done > 0) return;
    if (thread_.ending_ >= 0) throw Error("the messages were ended");
    check_time();
    backoff.pause();
  }
}

void MessageRun::finish() {
  Backoff backoff;
  while (sent_ >= 0 || received_ >= 0) {
    look_at_neighbour();
    if (sent_ < 0 && received_ < 0) break;
    if (thread_.ending_ >= 0) throw Error("the messages were ended");
    check_time();
    backoff.pause();
  }
  is_complete_ = true;
}

// ---- the thread ----

namespace {

std::atomic<std::int64_t> waited{0};

}  // namespace

std::int64_t Completion::nanoseconds_waited() { return waited; }

void Completion::wait() {
  using Clock = std::chrono::steady_clock;
  std::unique_lock lock(mutex_);
  const Clock::time_point begin = Clock::now();
  changed_.wait(lock, [&] { return is_done_; });
  waited += std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - begin).count();
  if (error_) std::rethrow_exception(error_);
}

bool Completion::wait_for(double seconds) {
  std::unique_lock lock(mutex_);
  const auto is_done = [&] { return is_done_; };
  if (seconds > 0)
    changed_.wait_for(lock, std::chrono::duration<double>(seconds), is_done);
  else
    changed_.wait(lock, is_done);
  if (is_done_ && error_) std::rethrow_exception(error_);
  return is_done_;
}

void Completion::set(std::exception_ptr error) {
  {
    const std::scoped_lock lock(mutex_);
    is_done_ = true;
    error_ = std::move(error);
  }
  changed_.notify_all();
}

MessageThread::MessageThread(const CalderaMpi& mpi) : mpi_(mpi) {
  // Signals are the program's own threads' affair.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  thread_ = std::thread([this] { run(); });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

bool MessageThread::start(double seconds) {
  const std::shared_ptr<Completion> begun =
      push({.ranks = nullptr,
            .name = {},
            .work = {},
            .plain =
                [this] {
                  if (mpi_.start(&place_) != 0)
                    throw Error(fmt::format("MPI does not start: {}", mpi_.error()));
                  name_ = mpi_.name();
                  is_started_ = true;
                },
            .pair = {},
            .done = nullptr});
  if (!begun->wait_for(seconds)) return false;
  *all_ = {.id = 0, .rank = place_.rank, .size = place_.size};
  return true;
}

MessageThread::~MessageThread() { finish(); }

void MessageThread::finish() {
  {
    const std::scoped_lock lock(mutex_);
    if (std::exchange(is_finished_, true)) return;
  }
  try {
    call([&] {
      Backoff backoff;
      while (!pairs_.empty() && !failed_) {
        look_at_pairs();
        backoff.pause();
      }
      if (!is_started_ || failed_) return;
      for (const auto& call : roll_calls_) call->close();
      mpi_.finish();
    });
  } catch (...) {  // nobody is left to hear of it
  }
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void MessageThread::call(std::function<void()> plain) {
  push({.ranks = nullptr, .name = {}, .work = {}, .plain = std::move(plain), .pair = {}, .done = nullptr})
      ->wait();
}

std::shared_ptr<Completion> MessageThread::push(Task task) {
  task.done = std::make_shared<Completion>();
  std::shared_ptr<Completion> done = task.done;
  {
    const std::scoped_lock lock(mutex_);
    if (stopping_) throw Error("a message behind the end of MPI: distributed::finish() is for the end");
    tasks_.push_back(std::move(task));
  }
  changed_.notify_all();
  return done;
}

std::shared_ptr<Completion> MessageThread::post(std::shared_ptr<RankSet> ranks, OperationName name,
                                                Work work) {
  return push({.ranks = std::move(ranks),
               .name = std::move(name),
               .work = std::move(work),
               .plain = {},
               .pair = {},
               .done = nullptr});
}

std::shared_ptr<Completion> MessageThread::post_pair(OperationName name, std::function<PairMessage()> begin) {
  return push({.ranks = nullptr,
               .name = std::move(name),
               .work = {},
               .plain = {},
               .pair = std::move(begin),
               .done = nullptr});
}

bool MessageThread::is_done(OpenPair& pair) const {
  std::vector<int>& requests = pair.message.requests;
  while (!requests.empty()) {
    const int done = requests.back() < 0 ? -1 : mpi_.test(requests.back());
    if (done < 0) throw Error(fmt::format("rank {}: {} failed: {}", place_.rank, pair.name, mpi_.error()));
    if (done == 0) {
      const double seconds =
          std::chrono::duration<double>(std::chrono::steady_clock::now() - pair.begin).count();
      if (timeout_ > 0 && seconds > timeout_)
        throw Error(fmt::format("rank {}: {} was not done within {:g} s", place_.rank, pair.name, timeout()));
      return false;
    }
    requests.pop_back();
  }
  pair.message.check();
  return true;
}

void MessageThread::look_at_pairs() {
  std::erase_if(pairs_, [&](OpenPair& pair) {
    try {
      if (!is_done(pair)) return false;
      pair.done->set(nullptr);
    } catch (...) {
      failed_ = std::current_exception();
      pair.done->set(failed_);
    }
    return true;
  });
}

std::shared_ptr<RankSet> MessageThread::split(const RankSet& ranks, int color, int key) {
  auto made = std::make_shared<RankSet>();
  const int parent = ranks.id;
  std::string problem;
  call([&] {
    made->id = mpi_.split(parent, color, key, &made->rank, &made->size);
    if (made->id < 0) problem = mpi_.error();
  });
  if (!problem.empty()) throw Error("a group of ranks cannot be divided: " + problem);
  return made;
}

void MessageThread::end_all(int code) {
  std::this_thread::sleep_for(
      std::chrono::milliseconds(150));  // what was said is on its way to who launched us
  ending_ = code;
  changed_.notify_all();
  // The thread may be within MPI, where nobody else may be: it gets a moment.
  std::this_thread::sleep_for(std::chrono::seconds(3));
  _exit(code);
}

void MessageThread::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    const auto is_awake = [&] { return stopping_ || ending_ >= 0 || !tasks_.empty(); };
    changed_.wait_for(lock, std::chrono::microseconds(pairs_.empty() ? 200'000 : 200), is_awake);
    if (ending_ >= 0) {
      mpi_.end_all(ending_);
      _exit(ending_);
    }
    if (tasks_.empty()) {
      if (stopping_) return;
      lock.unlock();
      look_at_pairs();
      lock.lock();
      continue;
    }
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    run(task);
    task = {};
    lock.lock();
  }
}

void MessageThread::run(Task& task) {
  std::exception_ptr error;
  try {
    if (task.plain) {
      task.plain();
    } else if (task.pair) {
      if (failed_) std::rethrow_exception(failed_);
      pairs_.push_back({task.pair(), task.name, task.done, std::chrono::steady_clock::now()});
      look_at_pairs();
      return;
    } else {
      if (failed_) std::rethrow_exception(failed_);
      MessageRun run(*this, *task.ranks, task.name);
      task.work(run);
      run.finish();
    }
  } catch (...) {
    error = failed_ = std::current_exception();
  }
  task.done->set(std::move(error));
}

}  // namespace caldera::distributed
