// DataFileOptions: how the rows of data files are read.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace caldera {

class ChatFormat;

/// Says how the rows of data files are read.
struct DataFileOptions {
  /// The column in which a field of a form is, where it has another name: {"prompt", "question"}.
  std::map<std::string, std::string> columns = {};
  /// Leave out rows that cannot be read, and count them, instead of refusing the file.
  bool skip_bad_rows = false;
  ChatFormat* chat = nullptr;  ///< renders conversations; null refuses them
};

/// Reads columns as a flag gives them: "prompt=question,completion=answer". Throws ValueError naming a field
/// that no form has, and what is not of that shape.
std::map<std::string, std::string> parse_columns(std::string_view text);

}  // namespace caldera
