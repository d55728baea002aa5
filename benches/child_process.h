// Starts other programs: what peers are made of.
#pragma once

#include <array>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

namespace caldera::bench {

/// Variables of the environment to set, or, with an empty value, to take out.
using EnvironmentChanges = std::vector<std::pair<std::string, std::string>>;

/// Starts a program, found in PATH unless its name has a slash, with these descriptors as its standard input,
/// output and errors; -1 stands for this program's own. Returns 0 and sets `pid`, or the number of the error.
int start_process(const std::vector<std::string>& command, const EnvironmentChanges& changes,
                  const std::array<int, 3>& streams, int& pid);

/// Holds how a program ended, and what it printed.
struct FinishedProcess {
  /// Why it could not be started or did not end in time; empty: it ended.
  std::string failure;
  int exit_code = -1;  // 128 and the signal's number, where one ended it
  std::string out;
  std::string errors;
};

/// Runs a program without input until it ends; ends it where that takes longer than `patience`.
FinishedProcess run_process(const std::vector<std::string>& command, const EnvironmentChanges& changes,
                            std::chrono::seconds patience);

}  // namespace caldera::bench
