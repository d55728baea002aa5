#include "cli/training/data_flags.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <system_error>

#include "cli/arguments/domains.h"
#include "cli/arguments/usage_error.h"
#include "lm/base/atomic_file.h"
#include "training/data/hold_out.h"

namespace caldera::cli {
namespace {

struct LossOnName {
  const char* name;
  LossOn value;
};
constexpr std::array kLossOn{LossOnName{"usual", LossOn::usual}, LossOnName{"all", LossOn::all},
                             LossOnName{"completion", LossOn::completion}, LossOnName{"last", LossOn::last}};

bool has_prompts(const std::vector<ExampleSet>& files) {
  return std::ranges::any_of(files, [](const ExampleSet& file) {
    return std::ranges::any_of(file.examples,
                               [](const Example& e) { return !e.prompt.empty() || e.learned; });
  });
}

/// Bytes that a byte of text takes at most while it is read and tokenised.
constexpr std::uintmax_t kMemoryOfText = 10;

bool asks_for_prompts(const DatasetOptions& options) {
  return options.loss_on == LossOn::completion || options.loss_on == LossOn::last;
}

std::string plural(std::int64_t n, const char* noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::string row_losses(std::int64_t empty, std::int64_t bad, const std::string& first) {
  std::string text;
  if (empty > 0) text += fmt::format("; {} left out as empty", plural(empty, "row"));
  if (bad > 0) text += fmt::format("; {} left out as bad, the first: {}", plural(bad, "row"), first);
  return text;
}

}  // namespace

void DataFlags::declare(Arguments& args) {
  args.option("--data", paths,
              "Folder with train and valid (.jsonl, .json, .csv, .tsv or .txt), or one such file, or - for "
              "lines of "
              "JSON from standard input; PATH:WEIGHT passes over it WEIGHT times an epoch. May be given "
              "several times; "
              "without a validation part some of the training part is held out")
      .required()
      .type_name("PATH[:WEIGHT]");
  args.option("--columns", columns,
              "Columns that have other names than the fields: prompt=question,completion=answer")
      .type_name("FIELD=COLUMN,...");
  args.flag("--skip-bad-rows", skip_bad_rows, "Leave out rows that cannot be read, and count them");
  std::vector<std::string> names;
  names.reserve(kLossOn.size());
  for (const LossOnName& entry : kLossOn) names.emplace_back(entry.name);
  const Option on = args.option("--loss-on", loss_on,
                                "What counts: all of a text and what an assistant says (usual), everything, "
                                "completions and answers only, or the last answer")
                        .one_of(names)
                        .type_name("WHAT")
                        .show_default();
  args.flag("--mask-prompt", mask_prompt, "The same as --loss-on completion").excludes(on);
}

void DataFlags::declare_split(Arguments& args) {
  args.flag(
      "--stream", stream,
      "Read the rows of .jsonl, .csv, .tsv and .txt files when it is their turn, in random order: files "
      "of any size take little memory, and training begins once their rows are found");
  args.option(
          "--valid-fraction", valid_fraction,
          "Hold out this share of the training part, drawn by --seed (default: a twentieth, from its end)")
      .type_name("R")
      .check(positive_number());
}

DataFileOptions DataFlags::file_options(ChatFormat* chat) const {
  DataFileOptions options{.columns = {}, .skip_bad_rows = skip_bad_rows, .chat = chat};
  try {
    options.columns = parse_columns(columns);
  } catch (const ValueError& error) {
    throw UsageError(fmt::format("--columns: {}", error.what()));
  }
  return options;
}

DatasetOptions DataFlags::dataset_options(std::int64_t seq_len) const {
  const auto* const entry =
      std::ranges::find_if(kLossOn, [&](const LossOnName& e) { return loss_on == e.name; });
  return {.seq_len = seq_len, .loss_on = mask_prompt ? LossOn::completion : entry->value};
}

std::vector<DataPath> DataFlags::data_paths() const {
  std::vector<DataPath> list;
  for (const std::string& path : paths) {
    try {
      list.push_back(parse_weighted_path(path, "data"));
    } catch (const ValueError& error) {
      throw UsageError(fmt::format("--data {}", error.what()));
    }
  }
  return list;
}

void DataFlags::check_large_files() const {
  if (stream) return;
  std::uintmax_t bytes = 0;
  std::error_code ignored;
  for (const DataPath& data : data_paths()) {
    const std::filesystem::path path = data.path == "-" ? data.path : train_file(data.path);
    const std::uintmax_t size = std::filesystem::file_size(path, ignored);
    if (ignored) continue;
    if (size > kMaxTextFileBytes)
      throw FileError(fmt::format(
          "{} of {:.3g} GB is larger than the {:.3g} GB that are read at once; --stream reads rows as they "
          "are "
          "needed",
          path.string(), static_cast<double>(size) / 1e9, static_cast<double>(kMaxTextFileBytes) / 1e9));
    bytes += size;
  }
  const std::uintmax_t memory = static_cast<std::uintmax_t>(::sysconf(_SC_PHYS_PAGES)) *
                                static_cast<std::uintmax_t>(::sysconf(_SC_PAGESIZE));
  if (bytes * kMemoryOfText > memory)
    fmt::print(stderr,
               "warning: {} of {:.3g} GB may not fit the memory, {:.3g} GB; --stream reads rows as they are "
               "needed\n",
               shown(), static_cast<double>(bytes) / 1e9, static_cast<double>(memory) / 1e9);
}

std::string DataFlags::shown() const { return fmt::format("{}", fmt::join(paths, ", ")); }

TrainingData DataFlags::load(const Tokenizer& tokenizer, std::int64_t seq_len, std::uint64_t seed,
                             ChatFormat* chat) const {
  if (valid_fraction && *valid_fraction >= 1)
    throw UsageError(fmt::format("--valid-fraction {}: must be below 1", *valid_fraction));
  const DatasetOptions options = dataset_options(seq_len);
  if (stream) return load_stream(tokenizer, options, chat);
  DataSplits splits = load_splits(data_paths(), file_options(chat));
  if (asks_for_prompts(options) && !has_prompts(splits.train)) fail_without_prompts();
  const bool held_out = splits.valid.empty();
  if (held_out) {
    for (ExampleSet& file : splits.train) {
      std::optional<ExampleSet> held = valid_fraction ? hold_out_drawn(file, *valid_fraction, seed)
                                                      : hold_out_end(file, least_held, options.seq_len);
      if (held) splits.valid.push_back(*std::move(held));
    }
  } else if (valid_fraction) {
    throw ValueError(
        fmt::format("--valid-fraction: {} holds a validation part; leave the flag out", shown()));
  }

  TrainingData data{.train = std::make_unique<TokenDataset>(splits.train, tokenizer, options),
                    .valid = tokenised_valid(splits.valid, tokenizer, options),
                    .remark = {}};
  data.remark = describe(data, !held_out        ? ""
                               : valid_fraction ? " (drawn: there is no valid split)"
                                                : " (held out from the end: there is no valid split)");
  data.remark += describe_rows(splits.train);
  return data;
}

TrainingData DataFlags::load_stream(const Tokenizer& tokenizer, const DatasetOptions& options,
                                    ChatFormat* chat) const {
  if (valid_fraction)
    throw UsageError(
        "--valid-fraction: a stream is read in the order of training; put a valid.jsonl beside train.jsonl, "
        "or "
        "leave the flag out: the ends of the files are held out");
  const std::vector<DataPath> paths = data_paths();
  const DataFileOptions files = file_options(chat);
  std::vector<DataPath> folders = paths;
  std::erase_if(folders, [](const DataPath& data) { return !std::filesystem::is_directory(data.path); });
  DataSplits splits = load_splits(folders, files, {.train = false, .valid = true, .test = false});
  const bool held_out = splits.valid.empty();
  auto streamed =
      std::make_unique<StreamedDataset>(paths, tokenizer, files, options, held_out ? most_held : 0);
  if (asks_for_prompts(options) && !streamed->has_prompts()) fail_without_prompts();
  if (held_out) splits.valid = streamed->held_out();
  TrainingData data{.train = nullptr, .valid = std::nullopt, .remark = {}};
  data.stream = streamed.get();
  data.train = std::move(streamed);
  data.valid = tokenised_valid(splits.valid, tokenizer, options);
  data.remark = describe(data, held_out ? " (held out from the end: there is no valid split)" : "");
  return data;
}

std::optional<TokenDataset> DataFlags::tokenised_valid(const std::vector<ExampleSet>& files,
                                                       const Tokenizer& tokenizer,
                                                       const DatasetOptions& options) const {
  if (files.empty()) return std::nullopt;
  // Names the part that is at fault; the training part's message needs no name.
  try {
    return TokenDataset(files, tokenizer, options);
  } catch (const ValueError& error) {
    throw ValueError(fmt::format("validation part of {}: {}", shown(), error.what()));
  }
}

void DataFlags::fail_without_prompts() const {
  throw ValueError(
      fmt::format("--mask-prompt: {} holds no prompts to mask; leave the flag out, or give lines of "
                  "{{\"prompt\", \"completion\"}}",
                  shown()));
}

std::string DataFlags::describe(const TrainingData& data, const char* how_held_out) {
  const TokenDataset& train = data.train->sample();
  std::string remark =
      fmt::format("data: {} to train on", data.stream == nullptr
                                              ? plural(train.size(), "sequence")
                                              : fmt::format("{} of {:.3g} MB, read as they are needed",
                                                            plural(data.stream->rows(), "row"),
                                                            static_cast<double>(data.stream->bytes()) / 1e6));
  if (!data.valid)
    remark += ", too few to hold any out for validation";
  else
    remark += fmt::format(", {} to validate on{}", data.valid->size(), how_held_out);
  std::string of_train = describe_losses(train.losses(), train.seq_len());
  if (!of_train.empty() && data.stream != nullptr)
    of_train = fmt::format("; of the first {}{}", plural(train.size(), "sequence"), of_train.substr(1));
  remark += of_train;
  if (data.valid) {
    const std::string of_valid = describe_losses(data.valid->losses(), train.seq_len());
    if (!of_valid.empty()) remark += "; of those to validate on" + of_valid.substr(1);
  }
  // More than half is no accident of a few long rows.
  if (2 * train.truncated() > train.size())
    remark += "\nwarning: most examples are cut: a larger --seq-len keeps them whole";
  return remark;
}

std::string describe_losses(const DatasetLosses& losses, std::int64_t seq_len) {
  std::string text;
  if (losses.truncated > 0) text += fmt::format("; {} cut to {} tokens", losses.truncated, seq_len);
  if (losses.too_short > 0) text += fmt::format("; {} left out as too short", losses.too_short);
  if (losses.prompt_fills > 0)
    text += fmt::format("; {} left out, whose prompts fill the {} tokens", losses.prompt_fills, seq_len);
  if (losses.masked > 0) text += fmt::format("; {} left out, in which nothing counts", losses.masked);
  return text;
}

std::string describe_losses(const StreamLosses& losses, std::int64_t seq_len) {
  return describe_losses(losses.sequences, seq_len) +
         row_losses(losses.empty_rows, losses.bad_rows, losses.first_bad_row);
}

std::string describe_rows(const std::vector<ExampleSet>& files) {
  std::int64_t empty = 0, bad = 0;
  std::string first;
  for (const ExampleSet& file : files) {
    empty += file.empty_rows;
    bad += file.bad_rows;
    if (first.empty()) first = file.first_bad_row;
  }
  return row_losses(empty, bad, first);
}

}  // namespace caldera::cli
