#include "cli/files/outputs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <system_error>

#include "cli/arguments/usage_error.h"
#include "engine/base/error.h"
#include "lm/base/atomic_file.h"

namespace caldera::cli {
namespace {

namespace fs = std::filesystem;

void require_writable_folder(const fs::path& folder, const fs::path& wanted, const char* flag) {
  std::error_code error;
  if (!fs::is_directory(folder, error))
    throw FileError(fmt::format("{} {}: {} is not a folder", flag, wanted.string(), folder.string()));
  if (access(folder.c_str(), W_OK | X_OK) != 0)
    throw FileError(
        fmt::format("{} {}: no permission to write in {}", flag, wanted.string(), folder.string()));
}

/// `optional_folder`: the folder may be absent, it will be created.
void check_file_of(const fs::path& path, const char* flag, bool optional_folder) {
  std::error_code error;
  const auto refuse = [&](const char* problem) {
    throw FileError(fmt::format("{} {}: {}", flag, path.string(), problem));
  };
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status)) refuse("this is a folder; name a file");
  if (fs::exists(status) && access(path.c_str(), W_OK) != 0) refuse("no permission to replace this file");
  if (is_stream(path)) return;  // written to as it is
  if (fs::exists(status) && !fs::is_regular_file(status)) refuse("this is not a file that can be replaced");
  const fs::path folder = fs::absolute(follow_links(path)).parent_path();
  if (!optional_folder || fs::exists(folder, error)) require_writable_folder(folder, path, flag);
}

}  // namespace

void check_output_folder(const fs::path& path, const std::vector<const char*>& files, const char* flag) {
  if (path.empty()) throw UsageError(fmt::format("{} names no folder", flag));
  std::error_code error;
  // What exists of the path must be a folder; the rest will be created in it.
  fs::path existing = fs::absolute(path);
  while (!fs::exists(existing, error) && existing.has_relative_path()) {
    if (fs::is_symlink(existing, error))
      throw FileError(fmt::format("{} {}: {} is a symbolic link to nothing; remove it or create its target",
                                  flag, path.string(), existing.string()));
    existing = existing.parent_path();
  }
  require_writable_folder(existing, path, flag);
  for (const char* file : files) check_file_of(path / file, flag, true);
}

void check_output_file(const fs::path& path, const char* flag) { check_file_of(path, flag, false); }

}  // namespace caldera::cli
