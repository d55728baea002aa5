// Reads data files: examples from .jsonl and .txt, and folders of them.
#pragma once

#include <filesystem>
#include <optional>

#include "training/data/example.h"

namespace caldera {

class ChatFormat;

/// Reads a data file. `.txt`: the whole text is one document. `.jsonl`: an object a line, in one of the forms
/// of form.h, which other fields do not change; blank lines and examples without text are skipped. `chat`
/// renders conversations; null refuses them. Throws FileError, for a line "path:line: ...": a missing or
/// empty file, another extension, broken JSON, a line of no form, a conversation that the template refuses,
/// no example with text.
ExampleSet load_examples(const std::filesystem::path& path, ChatFormat* chat = nullptr);

/// The parts of a data folder.
struct DataSplits {
  ExampleSet train;
  std::optional<ExampleSet> valid;
  std::optional<ExampleSet> test;
};

/// Reads a folder with train, valid and test (each .jsonl or .txt; only train must be there), or one file as
/// train. Throws FileError as load_examples does, and when a part is there in both forms.
DataSplits load_splits(const std::filesystem::path& path, ChatFormat* chat = nullptr);

}  // namespace caldera
