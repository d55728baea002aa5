#include "training/data/example_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/base/json_file.h"
#include "training/data/chat_format.h"
#include "training/data/forms.h"

namespace caldera {
namespace {

using detail::DataForm;
using detail::JsonFields;

Example parse_example(std::string_view line, const std::string& where, ChatFormat* chat) {
  const auto json = detail::parse_json(line, where);
  if (!json.is_object()) throw FileError(fmt::format("{}: a JSON object was expected", where));
  const JsonFields fields(json, where);
  const auto& forms = detail::data_forms();
  const auto form = std::ranges::find_if(forms, [&](const DataForm& f) { return f.is_that(fields); });
  if (form == forms.end()) {
    std::string shown;
    for (const DataForm& f : forms) shown += fmt::format("{}{}", shown.empty() ? "" : ", ", f.shown);
    throw FileError(fmt::format("{}: none of the forms {}", where, shown));
  }
  try {
    return form->read({.fields = fields, .text = line, .chat = chat});
  } catch (const FileError&) {
    throw;
  } catch (const Error& error) {  // the template's, which knows no line
    throw FileError(fmt::format("{}: {}", where, error.what()));
  }
}

ExampleSet parse_jsonl(std::string_view text, const std::string& path, ChatFormat* chat) {
  ExampleSet set;
  int line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    auto example = parse_example(line, fmt::format("{}:{}", path, line_number), chat);
    if (!example.text.empty()) set.examples.push_back(std::move(example));
  }
  if (set.examples.empty()) throw FileError(fmt::format("{}: there is no example with text in it", path));
  return set;
}

/// The file of one split, if there is one.
std::optional<ExampleSet> load_split(const std::filesystem::path& folder, const char* name,
                                     ChatFormat* chat) {
  const auto jsonl = folder / fmt::format("{}.jsonl", name);
  const auto txt = folder / fmt::format("{}.txt", name);
  std::error_code ignored;
  const bool has_jsonl = std::filesystem::exists(jsonl, ignored);
  const bool has_txt = std::filesystem::exists(txt, ignored);
  if (has_jsonl && has_txt) {
    throw FileError(
        fmt::format("{}: holds both {}.jsonl and {}.txt; remove one", folder.string(), name, name));
  }
  if (has_jsonl) return load_examples(jsonl, chat);
  if (has_txt) return load_examples(txt, chat);
  return std::nullopt;
}

}  // namespace

ExampleSet load_examples(const std::filesystem::path& path, ChatFormat* chat) {
  std::string text = read_text_file(path);
  const auto extension = path.extension();
  if (extension != ".jsonl" && extension != ".txt") {
    throw FileError(fmt::format("{}: data files end in .jsonl or .txt", path.string()));
  }
  if (text.empty()) throw FileError(fmt::format("{}: the file is empty", path.string()));
  if (extension == ".jsonl") return parse_jsonl(text, path.string(), chat);
  ExampleSet set{.plain_text = true, .examples = {}};
  set.examples.push_back({"", std::move(text)});
  return set;
}

DataSplits load_splits(const std::filesystem::path& path, ChatFormat* chat) {
  std::error_code ignored;
  DataSplits splits;
  if (!std::filesystem::is_directory(path, ignored)) {
    splits.train = load_examples(path, chat);
    return splits;
  }
  auto train = load_split(path, "train", chat);
  if (!train) throw FileError(fmt::format("{}: the folder holds no train.jsonl or train.txt", path.string()));
  splits.train = *std::move(train);
  splits.valid = load_split(path, "valid", chat);
  splits.test = load_split(path, "test", chat);
  return splits;
}

}  // namespace caldera
