#include "engine/device/cpu_quota.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>

namespace caldera {
namespace {

namespace fs = std::filesystem;

/// "200000 100000": what may be used of a period, both in microseconds. "max", -1 and what is no number: no
/// bound.
std::optional<int> cores_of(const std::string& quota, const std::string& period) {
  std::istringstream from(quota + " " + period);
  double used = 0, of = 0;
  if (!(from >> used >> of) || !(used > 0) || !(of > 0)) return std::nullopt;
  constexpr double kMost = 1 << 20;
  return static_cast<int>(std::ceil(std::min(used / of, kMost)));
}

std::string line_of(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

/// Bounds of the group at `path` below `root`, and of those above it. A container often sees its own group as
/// the root, and the path as its host has it: a folder that is not there bounds nothing.
void lower(std::optional<int>& cores, const fs::path& root, const fs::path& path) {
  for (fs::path group = path;; group = group.parent_path()) {
    const fs::path folder = root / group.relative_path();
    for (const std::optional<int> found :
         {cores_of(line_of(folder / "cpu.max"), ""),
          cores_of(line_of(folder / "cpu.cfs_quota_us"), line_of(folder / "cpu.cfs_period_us"))}) {
      if (found) cores = std::min(cores.value_or(*found), *found);
    }
    if (!group.has_relative_path()) return;
  }
}

/// Whether "cpu,cpuacct" names the controller of time.
bool has_cpu(std::string_view controllers) {
  const std::string all = "," + std::string(controllers) + ",";
  return all.find(",cpu,") != std::string::npos;
}

}  // namespace

std::optional<int> cores_of_quota(const fs::path& root, std::string_view groups) {
  std::optional<int> cores;
  std::istringstream lines{std::string(groups)};
  for (std::string line; std::getline(lines, line);) {  // "4:cpu,cpuacct:/path", of version 2 "0::/path"
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const fs::path path = line.substr(second + 1);
    if (controllers.empty())
      lower(cores, root, path);
    else if (has_cpu(controllers))
      lower(cores, root / "cpu", path);
  }
  return cores;
}

std::optional<int> cores_of_quota() {
  std::ifstream in("/proc/self/cgroup");
  std::ostringstream text;
  text << in.rdbuf();
  return cores_of_quota("/sys/fs/cgroup", text.str());
}

}  // namespace caldera
