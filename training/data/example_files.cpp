#include "training/data/example_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/base/json_file.h"
#include "lm/base/unicode/utf8.h"
#include "training/data/files/data_file.h"
#include "training/data/forms.h"

namespace caldera {
namespace {

using detail::DataForm;
using detail::DataRow;
using detail::JsonFields;
using detail::RowReader;

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
  for (const DataForm& form : detail::data_forms()) shown.push_back(form.shown);
  return fmt::format("{}", fmt::join(shown, ", "));
}

Example parse_example(DataRow& row, const DataFileOptions& options) {
  nlohmann::ordered_json& object = row.json;
  if (!object.is_object()) throw FileError(fmt::format("{}: a JSON object was expected", row.where));
  if (!options.columns.empty()) rename_columns(object, options.columns);
  const nlohmann::json plain = object;
  const JsonFields fields(plain, row.where);
  const auto& forms = detail::data_forms();
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

/// For messages.
std::string_view what_it_is(ExampleKind kind) {
  switch (kind) {
    case ExampleKind::preference:
      return "a pair (chosen and rejected)";
    case ExampleKind::similar:
      return "two similar texts";
    case ExampleKind::prompt:
      return "a prompt alone ('completion' is missing)";
    case ExampleKind::text:
      break;
  }
  return "a text, a conversation or a prompt with its completion";
}

ExampleSet read_rows(RowReader& rows, const std::string& path, const DataFileOptions& options) {
  ExampleSet set;
  DataRow row;
  for (bool more = true; more;) {
    try {
      more = rows.next(row);
      if (!more) break;
      Example example = parse_example(row, options);
      if (!set.examples.empty() && example.kind != set.examples.front().kind)
        throw FileError(
            fmt::format("{}: the row is {}, and the first one is {}: an objective trains on one kind",
                        row.where, what_it_is(example.kind), what_it_is(set.examples.front().kind)));
      if (example.text.empty())
        ++set.empty_rows;
      else
        set.examples.push_back(std::move(example));
    } catch (const FileError& error) {
      if (!options.skip_bad_rows) throw;
      if (set.bad_rows++ == 0) set.first_bad_row = error.what();
    }
  }
  if (set.examples.empty()) {
    throw FileError(fmt::format("{}: there is no example with text in it{}", path,
                                set.bad_rows == 0 ? ""
                                                  : fmt::format("; {} rows could not be read, the first: {}",
                                                                set.bad_rows, set.first_bad_row)));
  }
  return set;
}

ExampleSet read_document(std::string text, const std::string& path) {
  if (!detail::is_utf8(text)) {
    const std::size_t at = detail::to_utf8(text).find(detail::kReplacementCharacter);
    throw FileError(fmt::format("{}: byte {} is not UTF-8 text; convert the file: iconv -f latin1 -t utf-8",
                                path, std::min(at, text.size())));
  }
  ExampleSet set{.plain_text = true, .examples = {}};
  set.examples.push_back({"", std::move(text)});
  return set;
}

/// The file of one part of a folder, if there is one.
std::optional<ExampleSet> load_part(const std::filesystem::path& folder, const char* name,
                                    const DataFileOptions& options) {
  std::vector<std::filesystem::path> found;
  for (const std::string_view extension : detail::data_extensions()) {
    std::filesystem::path path = folder / fmt::format("{}{}", name, extension);
    std::error_code ignored;
    if (std::filesystem::exists(path, ignored)) found.push_back(std::move(path));
  }
  if (found.size() > 1) {
    throw FileError(fmt::format("{}: holds both {} and {}; remove one", folder.string(),
                                found[0].filename().string(), found[1].filename().string()));
  }
  if (found.empty()) return std::nullopt;
  return load_examples(found[0], options);
}

}  // namespace

std::map<std::string, std::string> parse_columns(std::string_view text) {
  std::map<std::string, std::string> columns;
  const auto known = detail::data_fields();
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t equals = part.find('=');
    if (equals == part.npos || equals == 0 || equals + 1 == part.size())
      throw ValueError(fmt::format("'{}': give FIELD=COLUMN, as in prompt=question,completion=answer", part));
    const std::string field(part.substr(0, equals));
    if (std::ranges::find(known, field) == known.end())
      throw ValueError(
          fmt::format("'{}' is no field of the data: those are {}", field, fmt::join(known, ", ")));
    if (!columns.emplace(field, part.substr(equals + 1)).second)
      throw ValueError(fmt::format("'{}' is given two columns", field));
  }
  return columns;
}

ExampleSet load_examples(const std::filesystem::path& path, const DataFileOptions& options) {
  const std::string shown = path == "-" ? "standard input" : path.string();
  std::string text =
      path == "-" ? std::string(std::istreambuf_iterator<char>(std::cin), {}) : read_text_file(path);
  if (text.empty()) throw FileError(fmt::format("{}: the file is empty", shown));
  const std::filesystem::path extension = path == "-" ? ".jsonl" : path.extension();
  if (extension == ".txt") return read_document(std::move(text), shown);
  for (const detail::RowReaderKind& kind : detail::row_reader_kinds()) {
    if (extension != kind.extension) continue;
    if (const std::string advice = detail::advice_for(path, std::string_view(text).substr(0, 8));
        !advice.empty())
      throw FileError(fmt::format("{}: {}", shown, advice));
    return read_rows(*kind.make(text, shown), shown, options);
  }
  const std::string advice = detail::advice_for(path, std::string_view(text).substr(0, 8));
  throw FileError(fmt::format("{}: data files end in {}{}{}", shown,
                              fmt::join(detail::data_extensions(), ", "), advice.empty() ? "" : "; ",
                              advice));
}

DataPath parse_data_path(const std::string& text) {
  std::error_code ignored;
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || std::filesystem::exists(text, ignored)) return {.path = text};
  double weight = 0;
  const char* const begin = text.data() + colon + 1;
  const char* const end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(begin, end, weight);
  if (error != std::errc() || stopped != end) return {.path = text};
  if (!std::isfinite(weight) || weight <= 0 || weight > 1000)
    throw ValueError(fmt::format("{}: the weight of data must be above 0, and at most 1000", text));
  return {.path = text.substr(0, colon), .weight = weight};
}

DataSplits load_splits(std::span<const DataPath> paths, const DataFileOptions& options, DataParts parts) {
  DataSplits splits;
  for (const DataPath& data : paths) {
    const auto add = [&](std::vector<ExampleSet>& to, std::optional<ExampleSet> set, double weight) {
      if (!set) return;
      set->weight = weight;
      to.push_back(*std::move(set));
    };
    std::error_code ignored;
    if (!std::filesystem::is_directory(data.path, ignored)) {
      add(splits.train, load_examples(data.path, options), data.weight);
      continue;
    }
    if (parts.train) {
      auto train = load_part(data.path, "train", options);
      if (!train)
        throw FileError(fmt::format("{}: the folder holds no train.jsonl, nor a train of another kind: {}",
                                    data.path.string(), fmt::join(detail::data_extensions(), ", ")));
      add(splits.train, std::move(train), data.weight);
    }
    if (parts.valid) add(splits.valid, load_part(data.path, "valid", options), 1);
    if (parts.test) add(splits.test, load_part(data.path, "test", options), 1);
  }
  return splits;
}

DataSplits load_splits(const std::filesystem::path& path, const DataFileOptions& options, DataParts parts) {
  const DataPath one{.path = path};
  return load_splits(std::span(&one, 1), options, parts);
}

}  // namespace caldera
