#include "engine/device/vulkan/pipelines/cache_folder.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "engine/base/byte_size.h"

namespace caldera::vulkan {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kDefaultFolderLimit = std::uint64_t{256} << 20;
constexpr std::chrono::hours kAbandoned{1};

struct File {
  fs::path path;
  std::uint64_t bytes;
  fs::file_time_type used;
};

/// A file that was being written when its process ended has more behind its name.
bool is_ours(std::string_view name) {
  return name.find(".spv") != std::string_view::npos || name.starts_with("pipelines-") ||
         name.starts_with("products-");
}

/// The cache's files. Deletes those that nobody goes on writing.
std::vector<File> files_in(const fs::path& directory) {
  std::vector<File> files;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    std::error_code gone;
    if (!is_ours(name) || !entry->is_regular_file(gone)) continue;
    const std::uintmax_t bytes = entry->file_size(gone);
    const fs::file_time_type used = entry->last_write_time(gone);
    if (gone) continue;  // another process was faster
    if (!name.ends_with(".tmp"))
      files.push_back({entry->path(), bytes, used});
    else if (fs::file_time_type::clock::now() - used > kAbandoned)
      fs::remove(entry->path(), gone);
  }
  return files;
}

}  // namespace

CacheFolder::CacheFolder(fs::path directory, std::uint64_t limit) : directory_(std::move(directory)) {
  stats_.limit = limit;
}

std::uint64_t CacheFolder::default_limit() {
  constexpr const char* kName = "CALDERA_CACHE_LIMIT";
  const char* value = std::getenv(kName);
  return value == nullptr || *value == '\0' ? kDefaultFolderLimit : parse_bytes(value, kName);
}

void CacheFolder::used(const fs::path& file) {
  std::error_code error;
  fs::last_write_time(file, fs::file_time_type::clock::now(), error);
  const std::lock_guard lock(mutex_);
  ++stats_.hits;
}

void CacheFolder::missed() {
  const std::lock_guard lock(mutex_);
  ++stats_.misses;
}

void CacheFolder::wrote(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  stats_.bytes += bytes;
  ++stats_.entries;
  since_ += bytes;
  if (!looked_ || stats_.bytes > stats_.limit || since_ > stats_.limit / 8) tidy();
}

void CacheFolder::set_limit(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  stats_.limit = bytes;
  if (!directory_.empty()) tidy();
}

CacheStats CacheFolder::stats() {
  const std::lock_guard lock(mutex_);
  if (!directory_.empty()) tidy();
  return stats_;
}

/// Counts what there is, and deletes down to three quarters of the limit if that is more: a full directory is
/// not to be looked through at every file.
void CacheFolder::tidy() {
  std::vector<File> files = files_in(directory_);
  std::uint64_t bytes = 0;
  for (const File& file : files) bytes += file.bytes;
  std::uint64_t left = files.size();
  if (bytes > stats_.limit) {
    std::ranges::sort(files, {}, &File::used);
    for (const File& file : files) {
      if (bytes <= stats_.limit / 4 * 3 || left == 1) break;
      std::error_code error;
      fs::remove(file.path, error);
      if (error) continue;
      bytes -= file.bytes;
      --left;
      ++stats_.evictions;
    }
  }
  stats_.bytes = bytes;
  stats_.entries = left;
  since_ = 0;
  looked_ = true;
}

}  // namespace caldera::vulkan
