// Reading data files: the first half of dataset.h.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/base/json_file.h"
#include "training/data/dataset.h"

namespace caldera {
namespace {

using detail::JsonFields;

Example parse_example(std::string_view line, const std::string& where) {
  const auto json = detail::parse_json(line, where);
  if (!json.is_object()) throw FileError(fmt::format("{}: a JSON object was expected", where));
  const JsonFields fields(json, where);
  if (fields.has("messages")) {
    fields.fail("messages",
                "needs a chat template, which is not supported yet; use {\"prompt\", \"completion\"}");
  }
  if (fields.has("prompt") || fields.has("completion")) {
    return {fields.require_string("prompt"), fields.require_string("completion")};
  }
  if (!fields.has("text")) {
    throw FileError(fmt::format("{}: neither {{\"text\"}} nor {{\"prompt\", \"completion\"}}", where));
  }
  return {"", fields.require_string("text")};
}

ExampleSet parse_jsonl(std::string_view text, const std::string& path) {
  ExampleSet set;
  int line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const std::size_t end = std::min(text.find('\n'), text.size());
    const auto line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    auto example = parse_example(line, fmt::format("{}:{}", path, line_number));
    if (!example.text.empty()) set.examples.push_back(std::move(example));
  }
  if (set.examples.empty()) throw FileError(fmt::format("{}: there is no example with text in it", path));
  return set;
}

/// The file of one split, if there is one.
std::optional<ExampleSet> load_split(const std::filesystem::path& folder, const char* name) {
  const auto jsonl = folder / fmt::format("{}.jsonl", name);
  const auto txt = folder / fmt::format("{}.txt", name);
  std::error_code ignored;
  const bool has_jsonl = std::filesystem::exists(jsonl, ignored);
  const bool has_txt = std::filesystem::exists(txt, ignored);
  if (has_jsonl && has_txt) {
    throw FileError(
        fmt::format("{}: holds both {}.jsonl and {}.txt; remove one", folder.string(), name, name));
  }
  if (has_jsonl) return load_examples(jsonl);
  if (has_txt) return load_examples(txt);
  return std::nullopt;
}

}  // namespace

ExampleSet load_examples(const std::filesystem::path& path) {
  std::string text = read_text_file(path);
  const auto extension = path.extension();
  if (extension != ".jsonl" && extension != ".txt") {
    throw FileError(fmt::format("{}: data files end in .jsonl or .txt", path.string()));
  }
  if (text.empty()) throw FileError(fmt::format("{}: the file is empty", path.string()));
  if (extension == ".jsonl") return parse_jsonl(text, path.string());
  ExampleSet set{.plain_text = true, .examples = {}};
  set.examples.push_back({"", std::move(text)});
  return set;
}

DataSplits load_splits(const std::filesystem::path& path) {
  std::error_code ignored;
  DataSplits splits;
  if (!std::filesystem::is_directory(path, ignored)) {
    splits.train = load_examples(path);
    return splits;
  }
  auto train = load_split(path, "train");
  if (!train) throw FileError(fmt::format("{}: the folder holds no train.jsonl or train.txt", path.string()));
  splits.train = *std::move(train);
  splits.valid = load_split(path, "valid");
  splits.test = load_split(path, "test");
  return splits;
}

}  // namespace caldera
