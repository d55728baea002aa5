// Reads data files: examples from .jsonl, .json, .csv, .tsv and .txt, and folders of them.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "training/data/example.h"

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

/// Reads a data file. `.txt`: the whole text, which must be UTF-8, is one document. `.jsonl`: an object a
/// line, in one of the forms of form.h, which other fields do not change; blank lines are skipped. `.json`: a
/// list of such objects.
/// `.csv`, `.tsv` (RFC 4180): the first line names the fields. "-": .jsonl from standard input. Examples
/// without text are counted and left out. Throws FileError, for a row "path:line: ...": a missing or empty
/// file, another kind of file, broken JSON, a row of no form, a conversation that the template refuses, no
/// example with text.
ExampleSet load_examples(const std::filesystem::path& path, const DataFileOptions& options = {});

/// Names a file or folder of data, and how often an epoch passes over it.
struct DataPath {
  std::filesystem::path path;
  double weight = 1;
};

/// Reads "PATH" or "PATH:WEIGHT"; where a file has that whole name it is the path. Throws ValueError for a
/// weight that is not positive.
DataPath parse_data_path(const std::string& text);

/// The parts of data, a set a file.
struct DataSplits {
  std::vector<ExampleSet> train;
  std::vector<ExampleSet> valid;
  std::vector<ExampleSet> test;
};

/// Says which parts of a folder are read. The training part must be there where it is asked for.
struct DataParts {
  bool train = true;
  bool valid = true;
  bool test = false;
};

/// Reads folders with train, valid and test (each one file of a kind above), and files as parts of train.
/// Throws FileError as load_examples does, and when a part of a folder is there in two forms.
DataSplits load_splits(std::span<const DataPath> paths, const DataFileOptions& options = {},
                       DataParts parts = {});

/// Reads one folder or file.
DataSplits load_splits(const std::filesystem::path& path, const DataFileOptions& options = {},
                       DataParts parts = {});

}  // namespace caldera
