#include "engine/device/vulkan/pipelines/disk_cache.h"

#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>
#include <system_error>

namespace caldera::vulkan {
namespace {

// To be raised when the format, the shader compiler's settings or Hash128 change.
constexpr std::string_view kVersion = "caldera-spirv-1";
constexpr std::uint64_t kShaderMagic = 0x31565053'4c414343ULL;
constexpr std::uint32_t kSpirvMagic = 0x07230203;

struct ShaderHeader {
  std::uint64_t magic = kShaderMagic;
  std::uint64_t key_lo = 0, key_hi = 0;
  std::uint64_t words = 0;
  std::uint64_t content_lo = 0, content_hi = 0;
};

Hash128 hash_of_words(std::span<const std::uint32_t> words) {
  Hash128 hash;
  for (std::uint32_t w : words) hash.mix(w);
  return hash;
}

std::optional<std::vector<std::uint32_t>> read_words(const std::filesystem::path& path, const Hash128& key) {
  std::ifstream file(path, std::ios::binary);
  ShaderHeader header;
  if (!file.read(reinterpret_cast<char*>(&header), sizeof header)) return std::nullopt;
  constexpr std::uint64_t kMostWords = 1U << 24;
  if (header.magic != kShaderMagic || header.key_lo != key.lo || header.key_hi != key.hi ||
      header.words == 0 || header.words > kMostWords)
    return std::nullopt;
  std::vector<std::uint32_t> words(header.words);
  if (!file.read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(4 * words.size())))
    return std::nullopt;
  const Hash128 content = hash_of_words(words);
  if (content.lo != header.content_lo || content.hi != header.content_hi || words[0] != kSpirvMagic)
    return std::nullopt;
  return words;
}

}  // namespace

std::filesystem::path DiskCache::default_directory() {
  if (const char* own = std::getenv("CALDERA_CACHE_DIR")) return own;
  if (const char* xdg = std::getenv("XDG_CACHE_HOME"); xdg != nullptr && *xdg != '\0')
    return std::filesystem::path(xdg) / "caldera";
  if (const char* home = std::getenv("HOME"); home != nullptr && *home != '\0')
    return std::filesystem::path(home) / ".cache" / "caldera";
  return {};
}

Hash128 DiskCache::key(std::string_view text) {
  Hash128 hash;
  hash.mix(kVersion);
  hash.mix(text);
  return hash;
}

std::filesystem::path DiskCache::path(const Hash128& key) const {
  return directory_ / fmt::format("{:016x}{:016x}.spv", key.hi, key.lo);
}

std::optional<std::vector<std::uint32_t>> DiskCache::load(const Hash128& key) const {
  if (directory_.empty()) return std::nullopt;
  auto words = read_words(path(key), key);
  if (words)
    folder_->used(path(key));
  else
    folder_->missed();
  return words;
}

void DiskCache::store(const Hash128& key, std::span<const std::uint32_t> words) const {
  if (directory_.empty()) return;
  const Hash128 content = hash_of_words(words);
  ShaderHeader header;
  header.key_lo = key.lo;
  header.key_hi = key.hi;
  header.words = words.size();
  header.content_lo = content.lo;
  header.content_hi = content.hi;
  std::string bytes(sizeof header + words.size_bytes(), '\0');
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, words.data(), words.size_bytes());
  replace_file(path(key), bytes);
  folder_->wrote(bytes.size());
}

void replace_file(const std::filesystem::path& path, std::string_view bytes) {
  std::error_code error;
  std::filesystem::create_directories(path.parent_path(), error);
  static std::atomic<unsigned> number{0};
  const std::filesystem::path temporary =
      path.string() + fmt::format(".{}.{}.tmp", static_cast<long>(::getpid()), number.fetch_add(1));
  bool written = false;
  {
    std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    written = file.good();
  }
  if (written) std::filesystem::rename(temporary, path, error);
  if (!written || error) std::filesystem::remove(temporary, error);
}

}  // namespace caldera::vulkan
