// Reads data files: examples from .jsonl, .json, .csv, .tsv and .txt, and folders of them.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lm/base/weighted_path.h"
#include "training/data/data_file_options.h"
#include "training/data/forms/example.h"

namespace caldera {

/// Reads a data file. `.txt`: the whole text, which must be UTF-8, is one document. `.jsonl`: an object a
/// line, in one of the forms of form.h, which other fields do not change; blank lines are skipped. `.json`: a
/// list of such objects.
/// `.csv`, `.tsv` (RFC 4180): the first line names the fields. "-": .jsonl from standard input. Examples
/// without text are counted and left out. Throws FileError, for a row "path:line: ...": a missing or empty
/// file, another kind of file, broken JSON, a row of no form, a conversation that the template refuses, no
/// example with text.
ExampleSet load_examples(const std::filesystem::path& path, const DataFileOptions& options = {});

/// Names a file or folder of data; the weight is how often an epoch passes over it.
using DataPath = WeightedPath;

/// The parts of data, a set a file.
struct DataSplits {
  std::vector<ExampleSet> train;
  std::vector<ExampleSet> valid;
  std::vector<ExampleSet> test;
};

/// Returns the file of a folder's part: "train", "valid" or "test"; nothing where there is none. Throws
/// FileError where it is there in two forms.
std::optional<std::filesystem::path> find_data_part(const std::filesystem::path& folder,
                                                    std::string_view name);

/// Returns the file to train on: of a folder its part "train", which must be there; else the path itself.
std::filesystem::path train_file(const std::filesystem::path& path);

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
