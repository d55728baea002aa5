// The bound of the cache directory, in bytes: what was used longest ago is deleted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>

#include "engine/device/cache_stats.h"

namespace caldera::vulkan {

/// Any thread, and any number of processes on one directory: files are made by renaming, readers have a file
/// open or miss it, and a file that another process deleted first is gone all the same. Each process looks
/// through the directory when it first writes and after every eighth of the limit that it wrote, so that
/// several exceed the limit by an eighth each at most. The time of a file's last use is its time of writing,
/// which a use brings up to date. Only files that the cache makes are counted and deleted; what a process
/// that ended early left half written goes after an hour. Nothing is thrown: a directory that cannot be read
/// or written has no bound.
class CacheFolder {
 public:
  CacheFolder(std::filesystem::path directory, std::uint64_t limit);

  /// CALDERA_CACHE_LIMIT ("64MiB"), or 256 MiB. Throws ValueError for what is no size.
  static std::uint64_t default_limit();

  /// A file of the directory was read, or was looked for in vain.
  void used(const std::filesystem::path& file);
  void missed();
  /// A file of so many bytes was written. Makes room; the newest file stays.
  void wrote(std::uint64_t bytes);
  void set_limit(std::uint64_t bytes);
  /// Counts of this process, but for entries and bytes: those are the directory's.
  CacheStats stats();

 private:
  void tidy();

  const std::filesystem::path directory_;
  std::mutex mutex_;
  CacheStats stats_;
  std::uint64_t since_ = 0;  // bytes written since the last look
  bool looked_ = false;
};

}  // namespace caldera::vulkan
