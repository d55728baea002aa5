#include "lm/base/file_identity.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "engine/base/error.h"
#include "lm/base/sha256.h"

namespace caldera {
namespace {

constexpr std::uintmax_t kPieces = 64;
constexpr std::uintmax_t kPieceBytes = 4096;

void add_number(Sha256& hash, std::uintmax_t number) { hash.add(std::as_bytes(std::span(&number, 1))); }

void add_file(Sha256& hash, const std::filesystem::path& path) {
  const std::uintmax_t size = std::filesystem::file_size(path);
  hash.add(path.filename().string()).add(std::string_view("\0", 1));
  add_number(hash, size);
  add_number(hash,
             static_cast<std::uintmax_t>(std::filesystem::last_write_time(path).time_since_epoch().count()));
  std::ifstream file(path, std::ios::binary);
  std::vector<char> piece(kPieceBytes);
  for (std::uintmax_t i = 0; i < kPieces; ++i) {
    const std::uintmax_t at = size / kPieces * i;
    file.clear();
    file.seekg(static_cast<std::streamoff>(at));
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    hash.add(std::string_view(piece.data(), static_cast<std::size_t>(file.gcount())));
    if (size <= kPieceBytes) break;  // that was all of it
  }
  if (file.bad()) throw FileError(path.string() + ": cannot be read");
}

}  // namespace

std::string file_identity(const std::filesystem::path& path) {
  Sha256 hash;
  try {
    if (!std::filesystem::is_directory(path)) {
      add_file(hash, path);
      return hash.hex();
    }
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(path))
      if (entry.is_regular_file()) files.push_back(entry.path());
    std::ranges::sort(files);
    for (const std::filesystem::path& file : files) add_file(hash, file);
  } catch (const std::filesystem::filesystem_error& error) {
    throw FileError(path.string() + ": " + error.code().message());
  }
  return hash.hex();
}

}  // namespace caldera
