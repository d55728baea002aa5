// Reads how many cores a container leaves a process (Linux control groups). Private to engine/device/.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace caldera {

/// Returns the cores whose time the control groups of a process give it, rounded up: the least that cpu.max
/// (version 2) or cpu.cfs_quota_us over cpu.cfs_period_us (version 1) say, of its own group and those above.
/// `root` is where groups are mounted ("/sys/fs/cgroup"), `groups` the text of /proc/self/cgroup. Nothing
/// where no group has a bound; a file that is missing, or says no number above 0, is none.
std::optional<int> cores_of_quota(const std::filesystem::path& root, std::string_view groups);

/// Returns it for this process.
std::optional<int> cores_of_quota();

}  // namespace caldera
