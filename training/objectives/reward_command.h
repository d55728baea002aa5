// RewardCommand: a program of the user's that judges answers, over JSON Lines.
#pragma once

#include <sys/types.h>

#include <span>
#include <string>
#include <vector>

#include "training/objectives/answer.h"

namespace caldera {

/// Runs `command` by the shell for as long as the object lives. It gets one JSON object a line on its
/// standard input: the fields of the row and "completion", and answers each with a line on its standard
/// output: a number, or an object with "reward". It has to flush each line. Its standard error is the
/// process's. One thread at a time.
class RewardCommand {
 public:
  /// Throws Error where no process can be started.
  explicit RewardCommand(std::string command);
  /// Closes its input and waits for its end.
  ~RewardCommand();
  RewardCommand(const RewardCommand&) = delete;
  RewardCommand& operator=(const RewardCommand&) = delete;

  /// Returns a reward for each answer. Throws Error where the program ends, or says something that is no
  /// finite number.
  std::vector<double> judge(std::span<const Answer> answers);

 private:
  std::string read_line();

  std::string command_;
  pid_t process_ = -1;
  int to_ = -1;       // its standard input
  int from_ = -1;     // its standard output
  std::string rest_;  // read, and beyond the lines that were asked for
};

}  // namespace caldera
