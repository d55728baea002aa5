// Reads the data of a command that trains or evaluates: its flags, and what is held out, cut and left out.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments/arguments.h"
#include "training/data/dataset.h"
#include "training/data/example_files.h"
#include "training/data/forms/chat_format.h"
#include "training/data/stream/streamed_dataset.h"
#include "training/data/training_set.h"

namespace caldera::cli {

/// Data split and, but for a stream, tokenised.
struct TrainingData {
  std::unique_ptr<TrainingSet> train;
  std::optional<TokenDataset> valid;
  std::string remark;                       ///< on what was held out, cut or left out; for people
  const StreamedDataset* stream = nullptr;  ///< `train`, where that is one
};

/// The values of the flags that say what the data are.
struct DataFlags {
  std::vector<std::string> paths;
  std::string columns;
  bool skip_bad_rows = false;
  bool stream = false;
  bool mask_prompt = false;
  std::string loss_on = "usual";
  std::optional<double> valid_fraction;
  /// Sequences that a held out part has at least: a batch.
  std::int64_t least_held = 1;
  /// Sequences of a stream that are held out at most: what is validated on.
  std::int64_t most_held = 1024;

  /// Declares --data, --columns, --skip-bad-rows, --loss-on and --mask-prompt.
  void declare(Arguments& args);
  /// Declares --valid-fraction and --stream.
  void declare_split(Arguments& args);

  /// Throws ValueError for flags that contradict one another or name what there is not.
  DataFileOptions file_options(ChatFormat* chat) const;
  DatasetOptions dataset_options(std::int64_t seq_len) const;
  std::vector<DataPath> data_paths() const;
  /// --data for messages.
  std::string shown() const;

  /// Says on standard error that --stream would help, where the files are large for the machine's memory.
  /// Throws FileError that says so for one that cannot be read at once.
  void check_large_files() const;

  /// Reads and tokenises --data. Where it holds no validation part, some of the training part is held out:
  /// --valid-fraction, drawn by `seed`; without that flag the end of each file, the last twentieth, or
  /// `least_held` if that is more, but at most a quarter. Throws FileError and ValueError.
  TrainingData load(const Tokenizer& tokenizer, std::int64_t seq_len, std::uint64_t seed,
                    ChatFormat* chat) const;

 private:
  TrainingData load_stream(const Tokenizer& tokenizer, const DatasetOptions& options, ChatFormat* chat) const;
  std::optional<TokenDataset> tokenised_valid(const std::vector<ExampleSet>& files,
                                              const Tokenizer& tokenizer,
                                              const DatasetOptions& options) const;
  [[noreturn]] void fail_without_prompts() const;
  static std::string describe(const TrainingData& data, const char* how_held_out);
};

/// Says what became of examples that are not whole: "; 3 cut to 256 tokens; ..."; empty where all are.
std::string describe_losses(const DatasetLosses& losses, std::int64_t seq_len);
/// Says what a stream has left out until now, in the same ways.
std::string describe_losses(const StreamLosses& losses, std::int64_t seq_len);
/// Says which rows of files were left out and why; empty where none was.
std::string describe_rows(const std::vector<ExampleSet>& files);

}  // namespace caldera::cli
