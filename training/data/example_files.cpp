#include "training/data/example_files.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iostream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "training/data/example_rows.h"
#include "training/data/files/data_file.h"

namespace caldera {
namespace {

using detail::DataRow;
using detail::RowReader;

ExampleSet read_rows(RowReader& rows, const std::string& path, const DataFileOptions& options) {
  ExampleSet set;
  DataRow row;
  for (bool more = true; more;) {
    try {
      more = rows.next(row);
      if (!more) break;
      Example example = detail::read_example(row, options);
      if (!set.examples.empty() && example.kind != set.examples.front().kind)
        throw FileError(fmt::format("{}: the row is of another kind than the first one: {}, not {}",
                                    row.where, description_of(example.kind),
                                    description_of(set.examples.front().kind)));
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
  detail::require_utf8(text, path, 0);
  ExampleSet set{.plain_text = true, .examples = {}};
  set.examples.push_back({"", std::move(text)});
  return set;
}

std::optional<ExampleSet> load_part(const std::filesystem::path& folder, std::string_view name,
                                    const DataFileOptions& options) {
  const auto path = find_data_part(folder, name);
  if (!path) return std::nullopt;
  return load_examples(*path, options);
}

}  // namespace

std::optional<std::filesystem::path> find_data_part(const std::filesystem::path& folder,
                                                    std::string_view name) {
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
  return found[0];
}

std::filesystem::path train_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return path;
  const auto part = find_data_part(path, "train");
  if (!part)
    throw FileError(fmt::format("{}: the folder holds no train.jsonl, nor a train of another kind: {}",
                                path.string(), fmt::join(detail::data_extensions(), ", ")));
  return *part;
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
    return read_rows(*kind.make(text, {.path = shown}), shown, options);
  }
  const std::string advice = detail::advice_for(path, std::string_view(text).substr(0, 8));
  throw FileError(fmt::format("{}: data files end in {}{}{}", shown,
                              fmt::join(detail::data_extensions(), ", "), advice.empty() ? "" : "; ",
                              advice));
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
    if (parts.train) add(splits.train, load_examples(train_file(data.path), options), data.weight);
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
