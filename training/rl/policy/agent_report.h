// AgentReport: a run of an agent as a page.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "training/rl/policy/policy.h"

namespace caldera::rl {

/// Holds what the page of a run shows.
struct AgentReport {
  std::string title;
  /// Names the columns of `rows`, as "progress.csv" does; one is "steps".
  std::vector<std::string> names;
  std::vector<std::vector<double>> rows;  ///< NaN where the table has no number
  /// Holds the episodes that the policy played in the end, without learning.
  std::optional<AgentEvaluation> evaluation;
};

/// Reads the table that AgentLog writes into a folder. Returns a report without rows where there is none, as
/// of a run in which no episode ended; leaves out lines that have other than numbers, or other columns.
AgentReport read_agent_log(const std::filesystem::path& folder);

/// Makes a page without a network: returns, lengths, speed, what the algorithm tells of itself, and how the
/// returns of the evaluation are spread.
std::string to_html(const AgentReport& report);

}  // namespace caldera::rl
