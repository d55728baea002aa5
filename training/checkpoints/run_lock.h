// RunLock: keeps two runs from writing to one folder.
#pragma once

#include <filesystem>
#include <memory>

namespace caldera {

/// Holds an exclusive lock on a folder, as the file ".caldera.lock" in it, for the object's life. The system
/// frees it when the process ends, however it ends; an orderly end also removes the file. Where the file
/// system has no locks, there is none.
class RunLock {
 public:
  static constexpr const char* kFile = ".caldera.lock";

  /// Throws FileError, naming the other process, when it is held, and when the file cannot be made.
  explicit RunLock(const std::filesystem::path& folder);
  ~RunLock();
  RunLock(const RunLock&) = delete;
  RunLock& operator=(const RunLock&) = delete;

 private:
  struct File;
  std::filesystem::path path_;
  std::unique_ptr<File> file_;
};

}  // namespace caldera
