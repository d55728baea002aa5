#include "lm/base/mapped_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <iterator>
#include <map>
#include <mutex>
#include <system_error>
#include <utility>

#include "engine/base/error.h"
#include "lm/base/file_descriptor.h"

namespace caldera::detail {

/// A range of memory, unmapped with its last owner. All that there are can be found by address.
class MappedFile::Mapping {
 public:
  Mapping(std::byte* data, std::size_t size) : data_(data), size_(size) {}
  ~Mapping() {
    {
      const std::scoped_lock lock(mutex());
      all().erase(data_);
    }
    ::munmap(data_, size_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;

  std::span<std::byte> bytes() const { return {data_, size_}; }

  static void add(const std::shared_ptr<Mapping>& mapping) {
    const std::scoped_lock lock(mutex());
    all()[mapping->data_] = mapping;
  }
  /// Returns the one that the address lies in; null where there is none.
  static std::shared_ptr<Mapping> of(const std::byte* address) {
    const std::scoped_lock lock(mutex());
    auto behind = all().upper_bound(address);
    return behind == all().begin() ? nullptr : std::prev(behind)->second.lock();
  }

 private:
  static std::mutex& mutex() {
    static auto* mutex = new std::mutex;  // outlives static tensors
    return *mutex;
  }
  static std::map<const std::byte*, std::weak_ptr<Mapping>>& all() {
    static auto* all = new std::map<const std::byte*, std::weak_ptr<Mapping>>;
    return *all;
  }

  std::byte* data_;
  std::size_t size_;
};

MappedFile::MappedFile(const std::filesystem::path& path) {
  const auto fail = [&](const std::string& why) {
    throw FileError(fmt::format("cannot read {}: {}", path.string(), why));
  };
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) fail(std::generic_category().message(errno));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) fail(std::generic_category().message(errno));
  if (!S_ISREG(status.st_mode)) fail(S_ISDIR(status.st_mode) ? "it is a folder" : "not a regular file");
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;  // mmap refuses an empty range
  // No swap is set aside for what may be written: mostly that is nothing.
  void* address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, fd.get(), 0);
  if (address == MAP_FAILED) fail(std::generic_category().message(errno));
  mapping_ = std::make_shared<Mapping>(static_cast<std::byte*>(address), size);
  Mapping::add(mapping_);
}

std::span<const std::byte> MappedFile::bytes() const {
  return mapping_ ? mapping_->bytes() : std::span<const std::byte>();
}

std::shared_ptr<std::byte> keep_mapped(std::span<const std::byte> bytes) {
  const std::shared_ptr<MappedFile::Mapping> mapping = MappedFile::Mapping::of(bytes.data());
  if (mapping == nullptr) return nullptr;
  const std::span<std::byte> whole = mapping->bytes();
  const std::ptrdiff_t begin = bytes.data() - whole.data();
  if (static_cast<std::size_t>(begin) + bytes.size() > whole.size()) return nullptr;
  return {mapping, whole.data() + begin};
}

void release_pages(std::span<const std::byte> mapped) {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(mapped.data()) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(mapped.data()) + mapped.size()) / page * page;
  // Advice: where the system does not take it, more memory is in use, and nothing else is wrong.
  if (begin < end) (void)::madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);  // NOLINT
}

}  // namespace caldera::detail
