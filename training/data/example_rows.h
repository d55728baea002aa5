// read_example(): what a row of a data file says. Private to training/data/.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "training/data/data_file_options.h"
#include "training/data/files/row_reader.h"
#include "training/data/forms/example.h"

namespace caldera::detail {

/// Reads a row by its form, after its columns have got the names of fields. Throws FileError, naming the row,
/// for what no form says and what the chat template refuses.
Example read_example(DataRow& row, const DataFileOptions& options);

/// Throws FileError for a text that is not UTF-8; it begins at byte `offset` of the file `path`.
void require_utf8(std::string_view text, const std::string& path, std::int64_t offset);

}  // namespace caldera::detail
