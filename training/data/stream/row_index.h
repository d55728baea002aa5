// RowIndex: reads any row of a data file without holding the file. Private to training/data/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lm/base/file_descriptor.h"
#include "training/data/files/row_splitter.h"

namespace caldera::detail {

/// Holds a row of a file, or a block of a text.
struct IndexedRow {
  std::string text;         ///< with its line end
  std::int64_t line = 1;    ///< of the file, in which it begins
  std::int64_t offset = 0;  ///< of its first byte in the file
};

/// Knows where about every 64 KiB of a file a row begins: some 400 bytes for each MiB. A row is found by
/// reading on from there. A const object may be used from several threads.
class RowIndex {
 public:
  using MakeSplitter = std::unique_ptr<RowSplitter> (*)();

  /// Reads the file once. Throws FileError where it cannot be read, or is empty.
  RowIndex(std::filesystem::path path, MakeSplitter split, bool has_header);

  /// Number of rows, blank ones among them, without the header.
  std::int64_t size() const { return rows_; }
  std::int64_t bytes() const { return bytes_; }
  /// The first row of a file whose first row is a header; else empty.
  const std::string& header() const { return header_; }
  /// A hash of the file's bytes.
  std::uint64_t fingerprint() const { return fingerprint_; }

  /// Reads row `row`, 0 to size() - 1. Throws FileError where the file has changed since.
  IndexedRow read(std::int64_t row) const;

 private:
  /// Says where a row begins.
  struct Mark {
    std::int64_t row, offset, line;
  };

  /// Reads up to `size` bytes at `offset` into `buffer`, and cuts it to what there was.
  void read_piece(std::int64_t offset, std::size_t size, std::string& buffer) const;

  std::filesystem::path path_;
  FileDescriptor file_;
  MakeSplitter split_;
  std::vector<Mark> marks_;
  std::int64_t rows_ = 0;
  std::int64_t bytes_ = 0;
  std::string header_;
  std::uint64_t fingerprint_ = 0;
};

}  // namespace caldera::detail
