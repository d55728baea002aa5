#include "cli/outputs.h"

#include <fmt/format.h>
#include <unistd.h>

#include <system_error>

#include "engine/tensor/error.h"

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

}  // namespace

void check_output_folder(const fs::path& path, const char* flag) {
  std::error_code error;
  // What exists of the path must be a folder; the rest will be created in it.
  fs::path existing = fs::absolute(path);
  while (!fs::exists(existing, error) && existing.has_relative_path()) existing = existing.parent_path();
  require_writable_folder(existing, path, flag);
}

void check_output_file(const fs::path& path, const char* flag) {
  std::error_code error;
  if (fs::is_directory(path, error))
    throw FileError(fmt::format("{} {}: this is a folder; name a file", flag, path.string()));
  require_writable_folder(fs::absolute(path).parent_path(), path, flag);
  if (fs::exists(path, error) && access(path.c_str(), W_OK) != 0)
    throw FileError(fmt::format("{} {}: no permission to replace this file", flag, path.string()));
}

}  // namespace caldera::cli
