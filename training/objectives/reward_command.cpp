#include "training/objectives/reward_command.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/error.h"
#include "lm/base/json_file.h"

namespace caldera {
namespace {

std::string line_of(const Answer& answer) {
  nlohmann::ordered_json line = nlohmann::ordered_json::parse(answer.data);
  line["completion"] = answer.text;
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

double reward_of(const std::string& line, const std::string& command) {
  const nlohmann::json value = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  const nlohmann::json* reward = &value;
  if (value.is_object() && value.contains("reward")) reward = &value["reward"];
  if (!reward->is_number() || !std::isfinite(reward->get<double>()))
    throw Error(
        fmt::format("reward command '{}': the line '{}' is neither a number nor an object with a "
                    "\"reward\"",
                    command, detail::printable(line)));
  return reward->get<double>();
}

}  // namespace

RewardCommand::RewardCommand(std::string command) : command_(std::move(command)) {
  // Sockets, not pipes: writing to one whose reader is gone is an error here, and no signal.
  std::array<int, 2> ends{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0)
    throw Error(fmt::format("reward command '{}': {}", command_, std::strerror(errno)));
  process_ = fork();
  if (process_ == 0) {
    setpgid(0, 0);  // Ctrl-C is for the run, which ends in good order with answers to its questions
    dup2(ends[1], STDIN_FILENO);
    dup2(ends[1], STDOUT_FILENO);
    execl("/bin/sh", "sh", "-c", command_.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  close(ends[1]);
  to_ = from_ = ends[0];
  if (process_ < 0) {
    close(to_);
    throw Error(fmt::format("reward command '{}': {}", command_, std::strerror(errno)));
  }
}

RewardCommand::~RewardCommand() {
  shutdown(to_, SHUT_WR);
  close(to_);
  waitpid(process_, nullptr, 0);
}

std::vector<double> RewardCommand::judge(std::span<const Answer> answers) {
  std::vector<double> rewards;
  for (const Answer& answer : answers) {
    const std::string line = line_of(answer);
    for (std::size_t sent = 0; sent < line.size();) {
      const ssize_t n = send(to_, line.data() + sent, line.size() - sent, MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0)
        throw Error(fmt::format("reward command '{}' has ended: {}", command_, std::strerror(errno)));
      sent += static_cast<std::size_t>(n);
    }
    rewards.push_back(reward_of(read_line(), command_));
  }
  return rewards;
}

std::string RewardCommand::read_line() {
  while (true) {
    if (const std::size_t end = rest_.find('\n'); end != std::string::npos) {
      std::string line = rest_.substr(0, end);
      rest_.erase(0, end + 1);
      return line;
    }
    std::array<char, 4096> bytes{};
    const ssize_t n = recv(from_, bytes.data(), bytes.size(), 0);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0)
      throw Error(
          fmt::format("reward command '{}' has ended without an answer to every line; it must write a "
                      "line for each that it reads, and flush it",
                      command_));
    rest_.append(bytes.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace caldera
