#include "lm/base/staged_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstdio>
#include <system_error>

#include "engine/base/error.h"
#include "lm/base/file_descriptor.h"
#include "lm/base/temporary_name.h"

namespace caldera {
namespace {

namespace fs = std::filesystem;
using detail::FileDescriptor;

[[noreturn]] void fail(const fs::path& path, const char* step, int code) {
  throw FileError(
      fmt::format("cannot write {}: {}: {}", path.string(), step, std::generic_category().message(code)));
}

/// "out/" names the folder "out".
fs::path without_slash(const fs::path& path) { return path.has_filename() ? path : path.parent_path(); }

fs::path parent_of(const fs::path& path) {
  const fs::path parent = path.parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

void flush(const fs::path& path) {
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  // Some file systems cannot flush a folder (EINVAL); the rename is then as durable as they make it.
  if (fd && ::fsync(fd.get()) != 0 && errno != EINVAL) fail(path, "flushing", errno);
}

void flush_tree(const fs::path& folder) {
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_directory() || entry.is_regular_file()) flush(entry.path());
  flush(folder);
}

}  // namespace

StagedFolder::StagedFolder(const fs::path& target)
    : target_(without_slash(target)),
      path_(parent_of(target_) / detail::temporary_name(target_.filename().string())) {
  if (::mkdir(path_.c_str(), 0777) != 0) fail(target_, "creating a folder beside it", errno);
}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  if (!path_.empty()) fs::remove_all(path_, ignored);
}

void StagedFolder::commit() {
  commit([](const fs::path&) { return true; });
}

void StagedFolder::commit(const std::function<bool(const fs::path& name)>& keep) {
  try {
    flush_tree(path_);
    if (!fs::exists(target_)) {
      if (::rename(path_.c_str(), target_.c_str()) != 0) fail(target_, "renaming", errno);
      path_.clear();
    } else {
      carry_over(keep);
      exchange();
    }
    flush(parent_of(target_));
  } catch (const fs::filesystem_error& error) {
    throw FileError(fmt::format("cannot write {}: {}", target_.string(), error.code().message()));
  }
}

void StagedFolder::carry_over(const std::function<bool(const fs::path&)>& keep) const {
  constexpr auto kLink =
      fs::copy_options::recursive | fs::copy_options::create_hard_links | fs::copy_options::copy_symlinks;
  for (const fs::directory_entry& entry : fs::directory_iterator(target_)) {
    const fs::path name = entry.path().filename();
    if (keep(name) && !fs::exists(fs::symlink_status(path_ / name)))
      fs::copy(entry.path(), path_ / name, kLink);
  }
}

void StagedFolder::exchange() {
  struct stat old {};
  if (::stat(target_.c_str(), &old) != 0) fail(target_, "looking at the old folder", errno);
  ::chmod(path_.c_str(), old.st_mode & 07777U);
  if (::renameat2(AT_FDCWD, path_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) != 0)
    fail(target_, "exchanging it for the new folder", errno);
  std::error_code ignored;
  fs::remove_all(path_, ignored);  // the old one now; what cannot be removed is a leftover
  path_.clear();
}

}  // namespace caldera
