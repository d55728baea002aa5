// Names of files and folders that are being written, and what a crash left of them.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace caldera::detail {

/// Makes a name that no other writer uses: ".caldera-PID-NUMBER.tmp", with `owner` before it where that is
/// given: ".OWNER.caldera-PID-NUMBER.tmp". Safe to call from several threads.
std::string temporary_name(std::string_view owner = {});

/// Removes the files and folders in `folder` that have such a name (of this `owner`; of any, where it is
/// empty) and whose writer no longer runs: what a crash left behind. Goes on where one cannot be removed. The
/// caller knows that no process of another machine writes there.
void remove_leftovers(const std::filesystem::path& folder, std::string_view owner = {});

}  // namespace caldera::detail
