#include "training/io/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <system_error>

#include "engine/tensor/error.h"
#include "training/io/file_descriptor.h"

namespace caldera {
namespace {

using detail::FileDescriptor;

std::string error_text(int code) { return std::generic_category().message(code); }

[[noreturn]] void fail_write(const std::filesystem::path& path, const char* step, int code) {
  throw FileError(fmt::format("cannot write {}: {}: {}", path.string(), step, error_text(code)));
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  auto parent = path.parent_path();
  return parent.empty() ? std::filesystem::path(".") : parent;
}

/// Removes a temporary file unless the rename happened.
class TemporaryFile {
 public:
  TemporaryFile(const std::filesystem::path& target, const std::filesystem::path& folder) {
    static std::atomic<std::uint64_t> counter{0};
    // O_EXCL and a fresh name: never write through a link or into a file that a killed process left behind.
    // Mode 0666 lets the user's umask decide, as for any other file a program writes.
    constexpr int kAttempts = 10000;
    for (int attempt = 0; attempt < kAttempts; ++attempt) {
      path_ = folder / fmt::format(".caldera-{}-{}.tmp", ::getpid(), counter.fetch_add(1));
      fd_ = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
      if (fd_) return;
      if (errno != EEXIST) break;
    }
    const int code = errno;
    path_.clear();
    fail_write(target, fmt::format("creating a file in folder {}", folder.string()).c_str(), code);
  }
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  int fd() const { return fd_.get(); }
  void rename_to(const std::filesystem::path& target) {
    fd_.reset();
    if (::rename(path_.c_str(), target.c_str()) != 0) fail_write(target, "renaming", errno);
    path_.clear();
  }

 private:
  std::filesystem::path path_;
  FileDescriptor fd_;
};

void write_all(int fd, std::span<const std::byte> bytes, const std::filesystem::path& target) {
  while (!bytes.empty()) {
    // The kernel writes at most about 2 GiB a call; smaller pieces keep that limit out of sight.
    const std::size_t want = std::min(bytes.size(), std::size_t{1} << 30);
    const ssize_t wrote = ::write(fd, bytes.data(), want);
    if (wrote < 0) {
      if (errno == EINTR) continue;
      fail_write(target, "writing", errno);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(wrote));
  }
}

}  // namespace

void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> parts) {
  if (!path.has_filename()) throw FileError(fmt::format("cannot write '{}': not a file name", path.string()));
  const auto folder = folder_of(path);
  TemporaryFile file(path, folder);
  for (const auto part : parts) write_all(file.fd(), part, path);
  if (::fsync(file.fd()) != 0) fail_write(path, "flushing", errno);
  file.rename_to(path);

  const FileDescriptor folder_fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot flush a folder (EINVAL); the rename is then as durable as they make it.
  if (folder_fd && ::fsync(folder_fd.get()) != 0 && errno != EINVAL) {
    fail_write(path, "flushing its folder", errno);
  }
}

void write_text_file(const std::filesystem::path& path, std::string_view text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text.data(), text.size()));
  write_file_atomically(path, std::span(&part, 1));
}

std::string read_text_file(const std::filesystem::path& path, std::uint64_t max_bytes) {
  // Non-blocking, so that naming a pipe is an error and not a wait for its writer.
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd) throw FileError(fmt::format("cannot read {}: {}", path.string(), error_text(errno)));
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) {
    throw FileError(fmt::format("cannot read {}: {}", path.string(), error_text(errno)));
  }
  if (S_ISDIR(status.st_mode)) throw FileError(fmt::format("cannot read {}: it is a folder", path.string()));
  if (!S_ISREG(status.st_mode)) {
    throw FileError(fmt::format("cannot read {}: not a regular file", path.string()));
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > max_bytes) {
    throw FileError(
        fmt::format("cannot read {}: {} bytes, more than the limit of {}", path.string(), size, max_bytes));
  }
  std::string text(size, '\0');
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t got = ::read(fd.get(), text.data() + done, text.size() - done);
    if (got < 0) {
      if (errno == EINTR) continue;
      throw FileError(fmt::format("cannot read {}: {}", path.string(), error_text(errno)));
    }
    if (got == 0) break;  // the file shrank after fstat: what is left is what there is
    done += static_cast<std::size_t>(got);
  }
  text.resize(done);
  return text;
}

}  // namespace caldera
