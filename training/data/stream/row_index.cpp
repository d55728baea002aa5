#include "training/data/stream/row_index.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include "engine/base/error.h"
#include "training/data/fnv1a.h"

namespace caldera::detail {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
constexpr std::int64_t kMarkBytes = std::int64_t{64} << 10;

[[noreturn]] void fail(const std::filesystem::path& path, int error) {
  throw FileError(fmt::format("cannot read {}: {}", path.string(), std::generic_category().message(error)));
}

}  // namespace

RowIndex::RowIndex(std::filesystem::path path, MakeSplitter split, bool has_header)
    : path_(std::move(path)), split_(split) {
  // Non-blocking, so that naming a pipe is an error and not a wait for its writer.
  file_ = FileDescriptor(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file_) fail(path_, errno);
  struct stat status {};
  if (::fstat(file_.get(), &status) != 0) fail(path_, errno);
  if (!S_ISREG(status.st_mode))
    throw FileError(
        fmt::format("cannot read {}: not a regular file; a stream reads rows in any order", path_.string()));

  const std::unique_ptr<RowSplitter> splitter = split();
  Fnv1a hash;
  std::string piece;
  std::int64_t line = 1, begin = 0;  // of the row that is open
  std::int64_t counted = 0;          // line ends before it are counted up to here
  bool header_is_open = has_header;
  for (;;) {
    read_piece(bytes_, kPieceBytes, piece);
    if (piece.empty()) break;
    hash.mix(piece);
    const auto end_row = [&](std::size_t size) {
      const std::int64_t end = bytes_ + static_cast<std::int64_t>(size);
      const std::int64_t from = std::max(counted, bytes_);
      line += std::count(piece.begin() + (from - bytes_), piece.begin() + (end - bytes_), '\n');
      counted = end;
      if (header_is_open) {
        header_.append(piece, 0, size);
        header_is_open = false;
      } else {
        ++rows_;
      }
      begin = end;
      if (marks_.empty() || begin - marks_.back().offset >= kMarkBytes)
        marks_.push_back({rows_, begin, line});
    };
    if (!has_header && marks_.empty()) marks_.push_back({0, 0, 1});
    splitter->feed(piece, end_row);
    if (header_is_open) header_ += piece;
    const std::int64_t next = bytes_ + std::ssize(piece);
    const std::int64_t from = std::max(counted, bytes_);
    line += std::count(piece.begin() + (from - bytes_), piece.end(), '\n');
    counted = bytes_ = next;
  }
  if (bytes_ == 0) throw FileError(fmt::format("{}: the file is empty", path_.string()));
  if (begin < bytes_ && !header_is_open) ++rows_;  // the last row has no line end
  fingerprint_ = hash.value();
}

void RowIndex::read_piece(std::int64_t offset, std::size_t size, std::string& buffer) const {
  buffer.resize(size);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got = ::pread(file_.get(), buffer.data() + done, size - done,
                                static_cast<off_t>(offset + static_cast<std::int64_t>(done)));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail(path_, errno);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  buffer.resize(done);
}

IndexedRow RowIndex::read(std::int64_t row) const {
  const auto behind = std::ranges::upper_bound(marks_, row, {}, &Mark::row);
  const Mark& mark = *std::prev(behind);
  IndexedRow found{.text = {}, .line = mark.line, .offset = mark.offset};
  const std::unique_ptr<RowSplitter> splitter = split_();
  std::string piece;
  std::int64_t at = mark.row, offset = mark.offset;
  bool done = false;
  while (!done && offset < bytes_) {
    // Most rows are within what lies before the next mark.
    read_piece(offset, static_cast<std::size_t>(std::min(kMarkBytes, bytes_ - offset)), piece);
    if (piece.empty())
      throw FileError(fmt::format("{}: the file is shorter than when the run began", path_.string()));
    std::size_t begin = 0;  // of row `at`, or of its part in this piece
    splitter->feed(piece, [&](std::size_t end) {
      if (done) return;
      if (at == row) {
        found.text.append(piece, begin, end - begin);
        done = true;
        return;
      }
      found.line += std::count(piece.begin() + static_cast<std::ptrdiff_t>(begin),
                               piece.begin() + static_cast<std::ptrdiff_t>(end), '\n');
      found.offset = offset + static_cast<std::int64_t>(end);
      begin = end;
      ++at;
    });
    if (!done && at == row) found.text.append(piece, begin, piece.npos);
    if (!done && at < row)
      found.line += std::count(piece.begin() + static_cast<std::ptrdiff_t>(begin), piece.end(), '\n');
    offset += std::ssize(piece);
  }
  return found;
}

}  // namespace caldera::detail
