// Whole-file reading with clear errors, and file writing that a crash cannot tear.
//
// All functions are safe to call from several threads. Writers of one path replace each other's file whole;
// the last rename wins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace caldera {

/// Takes the next bytes of a file.
using ByteSink = std::function<void(std::span<const std::byte>)>;

/// Files that belong together: all are written before the first is replaced, so that whatever can go wrong
/// with the content of one (a full disk, a folder in its place) leaves every old file as it was.
class StagedFiles {
 public:
  StagedFiles();
  /// Removes what was not committed.
  ~StagedFiles();
  StagedFiles(const StagedFiles&) = delete;
  StagedFiles& operator=(const StagedFiles&) = delete;

  /// Writes the concatenation of `parts` to a temporary file next to `path`, flushed to the disk. The folder
  /// must exist; where `path` is a symbolic link, what it points to is meant. A pipe or a character device is
  /// not replaced but written to, at once. Throws FileError.
  void add(const std::filesystem::path& path, std::span<const std::span<const std::byte>> parts);
  void add_text(const std::filesystem::path& path, std::string_view text);
  /// Adds a file whose content is made as it is written, so that it need not fit the memory: `produce` hands
  /// it piece by piece to what it is called with. What it throws goes on, and the file is left out.
  void add(const std::filesystem::path& path, const std::function<void(const ByteSink&)>& produce);
  /// Renames the files over their targets in the order they were added in, then flushes their folders. Throws
  /// FileError; the files not yet renamed are then left out.
  void commit();

 private:
  class TemporaryFile;
  std::vector<std::unique_ptr<TemporaryFile>> files_;
};

/// Returns where a write to `path` would go: `path` with symbolic links followed. The file need not exist.
/// Throws FileError for links that go round in a circle.
std::filesystem::path follow_links(const std::filesystem::path& path);

/// Whether writing to `path` cannot replace anything: it is, or links to, a pipe or a character device.
bool is_stream(const std::filesystem::path& path);

/// Replaces `path` by the concatenation of `parts`, as StagedFiles do: a temporary file in the same folder is
/// flushed to the disk and then renamed over `path`; the folder is flushed last. A kill or a full disk at any
/// moment leaves either the old file or the new one, whole. Throws FileError (and removes the temporary file)
/// on failure. The folder must exist.
void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> parts);

/// Writes text, in the same way.
void write_text_file(const std::filesystem::path& path, std::string_view text);

/// Largest file that read_text_file takes: 2 GiB - 1, so that positions in it fit 32-bit integers.
inline constexpr std::uint64_t kMaxTextFileBytes = (std::uint64_t{1} << 31) - 1;

/// The content of a regular file. Throws FileError naming the path when it is missing, a folder, unreadable,
/// or larger than `max_bytes`.
std::string read_text_file(const std::filesystem::path& path, std::uint64_t max_bytes = kMaxTextFileBytes);

}  // namespace caldera
