#include "benches/child_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

#include "benches/clock.h"

extern char** environ;

namespace caldera::bench {
namespace {

/// The program's environment with some variables set again or taken out.
std::vector<std::string> changed_environment(const EnvironmentChanges& changes) {
  std::vector<std::string> result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const std::string_view name = text.substr(0, text.find('='));
    if (std::none_of(changes.begin(), changes.end(),
                     [&](const auto& change) { return change.first == name; }))
      result.emplace_back(text);
  }
  for (const auto& [name, value] : changes)
    if (!value.empty()) result.push_back(fmt::format("{}={}", name, value));
  return result;
}

std::vector<char*> pointers(std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (std::string& text : strings) result.push_back(text.data());
  result.push_back(nullptr);
  return result;
}

/// A descriptor that is closed with its owner.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }
  void close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

 private:
  int fd_;
};

struct Pipe {
  Pipe() : fds(opened()), from(fds[0]), to(fds[1]) {}
  static std::array<int, 2> opened() {
    std::array<int, 2> made{-1, -1};
    if (pipe2(made.data(), O_CLOEXEC) != 0) return {-1, -1};
    return made;
  }
  std::array<int, 2> fds;
  Descriptor from;
  Descriptor to;
};

/// Appends what can be read now; closes it at the end.
void read_part(Descriptor& from, std::string& text) {
  std::array<char, 4096> part{};
  const ssize_t n = read(from.get(), part.data(), part.size());
  if (n < 0 && errno == EINTR) return;
  if (n > 0)
    text.append(part.data(), static_cast<std::size_t>(n));
  else
    from.close();
}

}  // namespace

int start_process(const std::vector<std::string>& command, const EnvironmentChanges& changes,
                  const std::array<int, 3>& streams, int& pid) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  constexpr std::array kStandard{STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO};
  for (std::size_t i = 0; i < streams.size(); ++i)
    if (streams[i] >= 0) posix_spawn_file_actions_adddup2(&actions, streams[i], kStandard[i]);
  std::vector<std::string> arguments = command;
  std::vector<std::string> variables = changed_environment(changes);
  const int status = posix_spawnp(&pid, arguments[0].c_str(), &actions, nullptr, pointers(arguments).data(),
                                  pointers(variables).data());
  posix_spawn_file_actions_destroy(&actions);
  if (status != 0) pid = -1;
  return status;
}

FinishedProcess run_process(const std::vector<std::string>& command, const EnvironmentChanges& changes,
                            std::chrono::seconds patience) {
  FinishedProcess result;
  Descriptor nothing(open("/dev/null", O_RDONLY | O_CLOEXEC));
  Pipe out;
  Pipe errors;
  if (nothing.get() < 0 || out.to.get() < 0 || errors.to.get() < 0) {
    result.failure = fmt::format("no pipe: {}", std::strerror(errno));
    return result;
  }
  int pid = -1;
  const int status = start_process(command, changes, {nothing.get(), out.to.get(), errors.to.get()}, pid);
  if (status != 0) {
    result.failure = std::strerror(status);
    return result;
  }
  out.to.close();
  errors.to.close();
  const Clock::time_point deadline = Clock::now() + patience;
  while (out.from.get() >= 0 || errors.from.get() >= 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    std::array<pollfd, 2> ready{{{out.from.get(), POLLIN, 0}, {errors.from.get(), POLLIN, 0}}};
    const int count = left <= 0 ? 0 : poll(ready.data(), ready.size(), static_cast<int>(left));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      result.failure = fmt::format("it has not ended after {} s", patience.count());
      kill(pid, SIGKILL);
      break;
    }
    if (ready[0].revents != 0) read_part(out.from, result.out);
    if (ready[1].revents != 0) read_part(errors.from, result.errors);
  }
  int ended = 0;
  while (waitpid(pid, &ended, 0) < 0 && errno == EINTR) {
  }
  result.exit_code = WIFEXITED(ended) ? WEXITSTATUS(ended) : 128 + WTERMSIG(ended);
  return result;
}

}  // namespace caldera::bench
