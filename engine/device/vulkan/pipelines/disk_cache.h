// Compiled shaders on disk: one file a shader, under CALDERA_CACHE_DIR, or $XDG_CACHE_HOME/caldera, or
// ~/.cache/caldera. A cache: whatever goes wrong with it costs time, never correctness, and raises nothing.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "engine/base/hash.h"
#include "engine/device/vulkan/pipelines/cache_folder.h"

namespace caldera::vulkan {

/// Writes the bytes beside `path` and renames, so that readers see the old file or all of the new one. Makes
/// the folder. What goes wrong leaves the old file.
void replace_file(const std::filesystem::path& path, std::string_view bytes);

class DiskCache {
 public:
  /// Empty `directory`: nothing is kept. Of the directory, no more than `limit` bytes.
  explicit DiskCache(std::filesystem::path directory, std::uint64_t limit = CacheFolder::default_limit())
      : directory_(std::move(directory)), folder_(std::make_shared<CacheFolder>(directory_, limit)) {}
  /// The directory that the environment names; empty without a home, or with CALDERA_CACHE_DIR set to
  /// nothing.
  static std::filesystem::path default_directory();
  /// The key of a shader's text: changes with the version of Caldera's compiler settings.
  static Hash128 key(std::string_view text);

  /// The words stored under the key, unless the file is missing, cut short, altered or of another format.
  std::optional<std::vector<std::uint32_t>> load(const Hash128& key) const;
  void store(const Hash128& key, std::span<const std::uint32_t> words) const;
  std::filesystem::path path(const Hash128& key) const;
  const std::filesystem::path& directory() const { return directory_; }
  /// Returns the directory, which others use as well.
  CacheFolder& folder() const { return *folder_; }

 private:
  std::filesystem::path directory_;
  std::shared_ptr<CacheFolder> folder_;
};

}  // namespace caldera::vulkan
