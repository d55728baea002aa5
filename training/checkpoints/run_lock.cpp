#include "training/checkpoints/run_lock.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <system_error>

#include "engine/base/error.h"
#include "lm/base/file_descriptor.h"

namespace caldera {
namespace {

/// Whether the open file is still the one at this path: the holder before may have removed it.
bool is_at(const detail::FileDescriptor& file, const std::filesystem::path& path) {
  struct stat open {};
  struct stat named {};
  return ::fstat(file.get(), &open) == 0 && ::stat(path.c_str(), &named) == 0 &&
         open.st_ino == named.st_ino && open.st_dev == named.st_dev;
}

std::string holder_of(const detail::FileDescriptor& file) {
  std::array<char, 32> text{};
  const ssize_t size = ::pread(file.get(), text.data(), text.size(), 0);
  const std::string_view digits(text.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return std::string(digits.substr(0, digits.find_first_not_of("0123456789")));
}

}  // namespace

struct RunLock::File : detail::FileDescriptor {
  using FileDescriptor::FileDescriptor;
};

RunLock::RunLock(const std::filesystem::path& folder) : path_(folder / kFile) {
  while (true) {
    file_ = std::make_unique<File>(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (!*file_)
      throw FileError(
          fmt::format("cannot write {}: {}", path_.string(), std::generic_category().message(errno)));
    if (::flock(file_->get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) return;
      throw FileError(
          fmt::format("{}: another run (process {}) writes there; wait for it, or choose another folder",
                      folder.string(), holder_of(*file_)));
    }
    if (is_at(*file_, path_)) break;
  }
  const std::string process = fmt::format("{}\n", ::getpid());
  if (::ftruncate(file_->get(), 0) == 0)
    static_cast<void>(!::pwrite(file_->get(), process.data(), process.size(), 0));  // only a note for people
}

RunLock::~RunLock() {
  if (is_at(*file_, path_)) ::unlink(path_.c_str());
}

}  // namespace caldera
