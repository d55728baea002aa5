// RowSplitter: where the rows of a data file end, found piece by piece, so that no more than a piece of the
// file is in memory. Private to training/data/.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string_view>

namespace caldera::detail {

/// A text that is cut into blocks is cut at the first line end from here on.
inline constexpr std::size_t kBlockBytes = 16384;

class RowSplitter {
 public:
  virtual ~RowSplitter() = default;
  /// Takes the next piece of the file. Calls `end` with the bytes of the piece before each place where a row
  /// ends, line end included, in order.
  virtual void feed(std::string_view piece, const std::function<void(std::size_t)>& end) = 0;
};

/// A row a line.
std::unique_ptr<RowSplitter> split_lines();
/// RFC 4180: a quoted field may hold line ends. `separator` stands between fields.
std::unique_ptr<RowSplitter> split_records(char separator);
/// Blocks of whole lines of at least kBlockBytes each; a line of more than twice that is cut between
/// characters.
std::unique_ptr<RowSplitter> split_blocks();

}  // namespace caldera::detail
