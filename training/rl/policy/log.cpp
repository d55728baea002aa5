#include "training/rl/policy/log.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <utility>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "training/report/event_file.h"
#include "training/trainer/line_file.h"

namespace caldera::rl {
namespace {

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

/// As a number of a table: nothing where there is none yet.
std::string cell(double value) { return std::isfinite(value) ? fmt::format("{:.9g}", value) : std::string(); }

/// Returns the line of names and those of steps up to `last`: an agent that goes on does so from where it was
/// saved, and its table may be longer. Nothing where there are no names.
std::string lines_up_to(std::int64_t last, const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string kept, line;
  while (std::getline(file, line) && !file.eof()) {  // the last line is none unless it ends
    const bool names = kept.empty() && line.starts_with("steps,");
    const bool row = !kept.empty() && caldera::detail::is_row_until(line, last);
    if (names || row) kept += line + "\n";
  }
  return kept;
}

}  // namespace

AgentLog::AgentLog(const std::filesystem::path& folder, std::int64_t first) : folder_(folder) {
  const std::filesystem::path table = folder / "progress.csv";
  if (first > 0) {
    const std::string kept = lines_up_to(first, table);
    write_text_file(table, kept);
    named_ = !kept.empty();
  }
  table_.open(table, named_ ? std::ios::app : std::ios::trunc);
  const double now = seconds_since_1970();
  events_.open(
      folder / fmt::format("events.out.tfevents.{}.{}.caldera", static_cast<std::int64_t>(now), ::getpid()),
      std::ios::binary);
  write(events_, caldera::detail::first_event(now));
  if (first > 0) write(events_, caldera::detail::restart_event(now, first));
}

AgentLog::~AgentLog() = default;

void AgentLog::write(std::ofstream& file, const std::string& text) const {
  file << text;
  if (!file.flush()) throw FileError(fmt::format("{}: cannot write the log of the run", folder_.string()));
}

void AgentLog::add(const Progress& progress) {
  if (progress.episodes == std::exchange(episodes_, progress.episodes)) return;
  std::vector<std::pair<std::string, double>> columns{{"rollout/mean_return", progress.mean_return},
                                                      {"rollout/mean_length", progress.mean_length},
                                                      {"time/steps_per_second", progress.steps_per_second}};
  for (const auto& [name, value] : progress.figures) columns.emplace_back("train/" + name, value);
  std::vector<std::pair<std::string, double>> known;
  std::string names = "steps,episodes", line = fmt::format("{},{}", progress.steps, progress.episodes);
  for (const auto& [name, value] : columns) {
    names += "," + name.substr(name.find('/') + 1);
    line += "," + cell(value);
    if (std::isfinite(value)) known.emplace_back(name, value);
  }
  // Before an algorithm learns it has no figures, and so the table no columns for them.
  if (!named_ && !progress.figures.empty()) {
    write(table_, names + "\n");
    named_ = true;
  }
  if (named_ && !progress.figures.empty()) write(table_, line + "\n");
  write(events_, caldera::detail::scalars_event(seconds_since_1970(), progress.steps, known));
}

}  // namespace caldera::rl
