// A file mapped into memory. Private to lm/.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace caldera::detail {

/// A whole regular file, mapped read-only. A const object may be used from several threads.
///
/// The mapping trusts the file system in one point: a file that another process truncates later faults on
/// access.
class MappedFile {
 public:
  /// Throws FileError for what is missing, unreadable, a folder, or another thing than a regular file.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  MappedFile& operator=(MappedFile&&) = delete;

  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Tells the system that mapped bytes have been read and need not stay in this process's memory: a copy of a
/// file's tensors then costs their own size, not twice that. They can be read again at any time.
void release_pages(std::span<const std::byte> mapped);

}  // namespace caldera::detail
