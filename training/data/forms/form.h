// DataForm: what a row of a data file may say. A form is a file beside this one and a line in forms.cpp.
// Private to training/data/.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "lm/base/json_file.h"
#include "training/data/forms/example.h"

namespace caldera {

class ChatFormat;

namespace detail {

/// A row of a file while it is read.
struct DataLine {
  const JsonFields& fields;
  const nlohmann::ordered_json& object;  ///< the same fields, with members in the order of the file
  ChatFormat* chat;                      ///< null where there is no template
};

struct DataForm {
  std::string_view shown;  ///< for messages: {"text"}
  bool (*is_that)(const JsonFields& fields);
  /// Throws FileError for fields of wrong types, and whatever ChatFormat throws.
  Example (*read)(const DataLine& line);
};

/// Returns the messages of field `name` of the line, in the order of their members. Throws FileError unless
/// it is a list of objects, each with a "role", or where there is no chat template.
nlohmann::ordered_json chat_messages(const DataLine& line, const char* name);
/// Returns the line's "label": true and false are 1 and 0, a whole number of at least 0 is itself. Nothing
/// where there is none or it is something else, which is no matter to objectives without labels.
std::optional<double> label_of(const DataLine& line);
/// Returns the line's "tools", null where it has none.
nlohmann::ordered_json chat_tools(const DataLine& line);

}  // namespace detail
}  // namespace caldera
