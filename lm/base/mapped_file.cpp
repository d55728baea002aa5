#include "lm/base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

#include "engine/base/error.h"
#include "lm/base/file_descriptor.h"

namespace caldera::detail {

MappedFile::MappedFile(const std::filesystem::path& path) {
  const auto fail = [&](const std::string& why) {
    throw FileError(fmt::format("cannot read {}: {}", path.string(), why));
  };
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) fail(std::generic_category().message(errno));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail(std::generic_category().message(errno));
  if (!S_ISREG(status.st_mode)) fail(S_ISDIR(status.st_mode) ? "it is a folder" : "not a regular file");
  size_ = static_cast<std::size_t>(status.st_size);
  if (size_ == 0) return;  // mmap refuses an empty range
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (address == MAP_FAILED) fail(std::generic_category().message(errno));
  data_ = static_cast<const std::byte*>(address);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

void release_pages(std::span<const std::byte> mapped) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(mapped.data()) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(mapped.data()) + mapped.size()) / page * page;
  // Advice: where the system does not take it, more memory is in use, and nothing else is wrong.
  if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // NOLINT
}

}  // namespace caldera::detail
