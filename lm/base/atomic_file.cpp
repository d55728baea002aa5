#include "lm/base/atomic_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

#include "engine/base/error.h"
#include "lm/base/file_descriptor.h"
#include "lm/base/temporary_name.h"

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

void flush_folder(const std::filesystem::path& folder, const std::filesystem::path& path) {
  const FileDescriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  // Some file systems cannot flush a folder (EINVAL); the rename is then as durable as they make it.
  if (fd && ::fsync(fd.get()) != 0 && errno != EINVAL) fail_write(path, "flushing its folder", errno);
}

/// Only a regular file can be replaced, or nothing. A folder would fail at the rename, when other files are
/// already in place; a socket or a disk would be lost to a file of its name.
void check_replaceable(const std::filesystem::path& target) {
  std::error_code error;
  const auto status = std::filesystem::status(target, error);
  if (std::filesystem::is_directory(status))
    throw FileError(fmt::format("cannot write {}: it is a folder", target.string()));
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))
    throw FileError(fmt::format("cannot write {}: not a regular file", target.string()));
}

/// Makes the content of a file.
using Produce = std::function<void(const ByteSink&)>;

void write_content(const FileDescriptor& fd, const Produce& produce, const std::filesystem::path& target) {
  produce([&](std::span<const std::byte> bytes) { write_all(fd.get(), bytes, target); });
}

void write_stream(const std::filesystem::path& path, const Produce& produce) {
  const FileDescriptor fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!fd) fail_write(path, "opening", errno);
  write_content(fd, produce, path);
}

}  // namespace

/// A file under a name of its own, removed unless it is renamed.
class StagedFiles::TemporaryFile {
 public:
  TemporaryFile(const std::filesystem::path& target, const Produce& produce) : target_(target) {
    // O_EXCL and a fresh name: never write through a link or into a file that a killed process left behind.
    // Mode 0666 lets the user's umask decide, as for any other file a program writes.
    constexpr int kAttempts = 10000;
    FileDescriptor fd;
    for (int attempt = 0; attempt < kAttempts && !fd; ++attempt) {
      path_ = folder() / detail::temporary_name();
      fd = FileDescriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
      if (!fd && errno != EEXIST) break;
    }
    if (!fd) {
      const int code = errno;
      fail_write(target, fmt::format("creating a file in folder {}", folder().string()).c_str(), code);
    }
    try {
      write_content(fd, produce, target);
      if (::fsync(fd.get()) != 0) fail_write(target, "flushing", errno);
    } catch (...) {
      ::unlink(path_.c_str());
      throw;
    }
  }
  ~TemporaryFile() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::filesystem::path& target() const { return target_; }
  std::filesystem::path folder() const { return folder_of(target_); }
  void rename() {
    if (::rename(path_.c_str(), target_.c_str()) != 0) fail_write(target_, "renaming", errno);
    path_.clear();
  }

 private:
  std::filesystem::path target_;
  std::filesystem::path path_;
};

StagedFiles::StagedFiles() = default;
StagedFiles::~StagedFiles() = default;

void StagedFiles::add(const std::filesystem::path& path, std::span<const std::span<const std::byte>> parts) {
  add(path, [&](const ByteSink& sink) {
    for (const auto part : parts) sink(part);
  });
}

void StagedFiles::add(const std::filesystem::path& path, const Produce& produce) {
  if (!path.has_filename()) throw FileError(fmt::format("cannot write '{}': not a file name", path.string()));
  // Before links are followed: those of /proc/self/fd lead to names that cannot be opened.
  if (is_stream(path)) return write_stream(path, produce);
  const auto target = follow_links(path);
  check_replaceable(target);
  files_.push_back(std::make_unique<TemporaryFile>(target, produce));
}

void StagedFiles::add_text(const std::filesystem::path& path, std::string_view text) {
  const std::span<const std::byte> part = std::as_bytes(std::span(text.data(), text.size()));
  add(path, std::span(&part, 1));
}

void StagedFiles::commit() {
  const auto files = std::exchange(files_, {});
  // Once more, now that every content is written: a rename that fails would part the files.
  for (const auto& file : files) check_replaceable(file->target());
  for (const auto& file : files) file->rename();
  for (std::size_t i = 0; i < files.size(); ++i)
    if (i == 0 || files[i]->folder() != files[i - 1]->folder())
      flush_folder(files[i]->folder(), files[i]->target());
}

std::filesystem::path follow_links(const std::filesystem::path& path) {
  constexpr int kMostLinks = 40;  // as Linux
  std::filesystem::path target = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks; ++i) {
    if (!std::filesystem::is_symlink(target, error)) return target;
    const auto next = std::filesystem::read_symlink(target, error);
    if (error) break;
    target = folder_of(target) / next;  // an absolute one replaces the folder
  }
  throw FileError(fmt::format("cannot write {}: its symbolic links lead nowhere", path.string()));
}

bool is_stream(const std::filesystem::path& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  return std::filesystem::is_fifo(status) || std::filesystem::is_character_file(status);
}

void write_file_atomically(const std::filesystem::path& path,
                           std::span<const std::span<const std::byte>> parts) {
  StagedFiles files;
  files.add(path, parts);
  files.commit();
}

void write_text_file(const std::filesystem::path& path, std::string_view text) {
  StagedFiles files;
  files.add_text(path, text);
  files.commit();
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
