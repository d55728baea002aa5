// data_file_kinds(): the kinds of data files by their extensions, and those that are refused with advice.
// Private to training/data/.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "training/data/files/row_reader.h"

namespace caldera::detail {

/// The kinds of files that hold rows; .txt, a document, is none of them.
std::span<const RowReaderKind> row_reader_kinds();

/// All extensions of data files, with ".txt", in the order in which they are named in messages.
std::vector<std::string_view> data_extensions();

/// Returns what to do with a file of a kind that is not read, for a message; empty where nothing is known of
/// it. `head` holds the first bytes of the file.
std::string advice_for(const std::filesystem::path& path, std::string_view head);

}  // namespace caldera::detail
