// StagedFolder: replaces a folder by another one in a single step.
#pragma once

#include <filesystem>
#include <functional>

namespace caldera {

/// Makes a folder beside the place where it is to be, and puts it there whole. A kill or a full disk at any
/// moment leaves either the old folder or the new one; what is left beside it has a name that
/// detail::remove_leftovers recognises. Not for use from several threads.
class StagedFolder {
 public:
  /// Creates an empty folder beside `target`, whose parent must exist. Throws FileError.
  explicit StagedFolder(const std::filesystem::path& target);
  /// Removes what was not committed.
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  /// Returns the folder to fill.
  const std::filesystem::path& path() const { return path_; }

  /// Flushes the content to the disk and renames the folder to its target. Where a folder stands there
  /// already, the entries of it that `keep` is true of, and that the new one lacks, go over into the new one:
  /// as hard links, before the two are exchanged, so that files which are open stay the same files. The old
  /// folder is removed then. Throws FileError where the file system cannot do it (a mount point; no hard
  /// links, no exchange of names), and the old folder is as it was.
  void commit(const std::function<bool(const std::filesystem::path& name)>& keep);
  void commit();

 private:
  void carry_over(const std::function<bool(const std::filesystem::path&)>& keep) const;
  void exchange();

  std::filesystem::path target_;
  std::filesystem::path path_;  // empty once it is committed
};

}  // namespace caldera
