// A file mapped into memory. Private to lm/.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>

namespace caldera::detail {

/// A whole regular file, mapped. What is written into the mapping is this process's own, and never reaches
/// the file. A const object may be used from several threads.
///
/// The mapping trusts the file system in one point: a file that another process truncates later faults on
/// access.
class MappedFile {
 public:
  /// Throws FileError for what is missing, unreadable, a folder, or another thing than a regular file.
  explicit MappedFile(const std::filesystem::path& path);

  std::span<const std::byte> bytes() const;

 private:
  friend std::shared_ptr<std::byte> keep_mapped(std::span<const std::byte> bytes);
  class Mapping;
  std::shared_ptr<Mapping> mapping_;
};

/// Returns the address of bytes that lie in a MappedFile; they stay mapped for as long as somebody holds it,
/// and may be written to. Null for others. Thread-safe.
std::shared_ptr<std::byte> keep_mapped(std::span<const std::byte> bytes);

/// Tells the system that mapped bytes have been read and need not stay in this process's memory: a copy of a
/// file's tensors then costs their own size, not twice that. They can be read again at any time.
void release_pages(std::span<const std::byte> mapped);

}  // namespace caldera::detail
