// Whole-file reading with clear errors, and file writing that a crash cannot tear.
//
// All functions are safe to call from several threads. Writers of one path replace each other's file whole;
// the last rename wins.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace caldera {

/// Replaces `path` by the concatenation of `parts`. The bytes go to a temporary file in the same folder,
/// which is flushed to the disk and then renamed over `path`; the folder is flushed last. A kill or a full
/// disk at any moment leaves either the old file or the new one, whole. Throws FileError (and removes the
/// temporary file) on failure. The folder must exist.
void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> parts);

/// The same, for text.
void write_text_file(const std::filesystem::path& path, std::string_view text);

/// Largest file that read_text_file takes: 2 GiB - 1, so that positions in it fit 32-bit integers.
inline constexpr std::uint64_t kMaxTextFileBytes = (std::uint64_t{1} << 31) - 1;

/// The content of a regular file. Throws FileError naming the path when it is missing, a folder, unreadable,
/// or larger than `max_bytes`.
std::string read_text_file(const std::filesystem::path& path, std::uint64_t max_bytes = kMaxTextFileBytes);

}  // namespace caldera
