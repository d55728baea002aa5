#include "training/data/example_rows.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/base/unicode/utf8.h"
#include "training/data/forms/forms.h"

namespace caldera::detail {
namespace {

// Gives the fields the names that the forms have. One of several files may have them already.
void rename_columns(nlohmann::ordered_json& object, const std::map<std::string, std::string>& columns) {
  nlohmann::ordered_json renamed = nlohmann::ordered_json::object();
  for (const auto& [field, column] : columns) {
    const auto found = object.find(column);
    if (found != object.end()) renamed[field] = *found;
  }
  for (const auto& [field, column] : columns)
    if (renamed.contains(field)) object.erase(column);
  for (auto& [field, value] : renamed.items()) object[field] = std::move(value);
}

std::string forms_shown() {
  std::vector<std::string_view> shown;
  for (const DataForm& form : data_forms()) shown.push_back(form.shown);
  return fmt::format("{}", fmt::join(shown, ", "));
}

}  // namespace

Example read_example(DataRow& row, const DataFileOptions& options) {
  nlohmann::ordered_json& object = row.json;
  if (!object.is_object()) throw FileError(fmt::format("{}: a JSON object was expected", row.where));
  if (!options.columns.empty()) rename_columns(object, options.columns);
  const nlohmann::json plain = object;
  const JsonFields fields(plain, row.where);
  const auto& forms = data_forms();
  const auto form = std::ranges::find_if(forms, [&](const DataForm& f) { return f.is_that(fields); });
  if (form == forms.end()) {
    throw FileError(fmt::format("{}: none of the forms {}; it has the fields {}", row.where, forms_shown(),
                                fmt::join(fields.names(), ", ")));
  }
  try {
    return form->read({.fields = fields, .object = object, .chat = options.chat});
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {  // the template's, which knows no line
    throw FileError(fmt::format("{}: {}", row.where, error.what()));
  }
}

void require_utf8(std::string_view text, const std::string& path, std::int64_t offset) {
  if (is_utf8(text)) return;
  const std::size_t at = std::min(to_utf8(text).find(kReplacementCharacter), text.size());
  throw FileError(fmt::format("{}: byte {} is not UTF-8 text; convert the file: iconv -f latin1 -t utf-8",
                              path, offset + static_cast<std::int64_t>(at)));
}

}  // namespace caldera::detail
