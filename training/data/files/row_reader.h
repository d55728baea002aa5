// RowReader: the rows of a data file, one after the other. A kind of file is a source beside this one and a
// line in row_readers.cpp. Private to training/data/.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "training/data/files/row_splitter.h"

namespace caldera::detail {

/// Holds one row of a data file.
struct DataRow {
  nlohmann::ordered_json json;  ///< as it stands there: an object, if the file is right
  std::string where;            ///< for messages: path:line, or path and the row's number
};

class RowReader {
 public:
  virtual ~RowReader() = default;
  /// Reads the next row into `row`; false at the end. Throws FileError for a row that cannot be read; the
  /// next call goes on behind it, where that can be known, or returns false.
  virtual bool next(DataRow& row) = 0;
};

/// Says where a text that is read comes from, for messages.
struct TextOrigin {
  std::string path;
  std::int64_t line = 1;  ///< of the text's beginning
};

/// Makes readers of one kind of file. `text` is the whole file, or its header and some of its rows, and must
/// outlive the reader.
struct RowReaderKind {
  std::string_view extension;  ///< with its dot
  std::unique_ptr<RowReader> (*make)(std::string_view text, const TextOrigin& origin);
  /// Makes what finds the rows of such a file; null where they cannot be found without reading all of it.
  std::unique_ptr<RowSplitter> (*split)() = nullptr;
  bool has_header = false;  ///< the first row names the columns
};

RowReaderKind jsonl_rows();  ///< an object a line; blank lines are skipped
RowReaderKind json_rows();   ///< a list of objects, or an object whose only member is such a list
RowReaderKind csv_rows();    ///< RFC 4180: the first line names the columns; fields are strings
RowReaderKind tsv_rows();    ///< the same with tabs

}  // namespace caldera::detail
