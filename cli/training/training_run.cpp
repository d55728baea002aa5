#include "cli/training/training_run.h"

#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/arguments/domains.h"
#include "cli/arguments/model_flags.h"
#include "cli/arguments/usage_error.h"
#include "cli/arguments/version.h"
#include "cli/files/outputs.h"
#include "cli/training/run_control.h"
#include "cli/training/run_settings.h"
#include "cli/training/sample_observer.h"
#include "cli/training/served_report.h"
#include "cli/training/shared_run.h"
#include "engine/device/cpu_threads.h"
#include "engine/distributed/distributed.h"
#include "training/evaluate/evaluate.h"
#include "training/objectives/registry.h"
#include "training/report/event_log.h"
#include "training/report/report_observer.h"
#include "training/trainer/json_log.h"
#include "training/trainer/progress.h"

namespace caldera::cli {
namespace {

namespace fs = std::filesystem;

/// Whether a path is inside of a folder (or is it), be they there or not.
bool is_within(const fs::path& path, const fs::path& folder) {
  const fs::path outer = fs::weakly_canonical(folder);
  const fs::path inner = fs::weakly_canonical(path);
  return std::ranges::mismatch(outer, inner).in1 == outer.end();
}

nlohmann::ordered_json or_null(const std::optional<double>& value) {
  return value ? nlohmann::ordered_json(nine_digits(*value)) : nlohmann::ordered_json(nullptr);
}

/// About what a run's folder takes at most: the checkpoints that are kept and the one that is being written,
/// each with the model or adapter, the parameters and two moments of each.
std::uint64_t bytes_of_checkpoints(CausalLM& model, const TrainingFlags& flags) {
  const TrainOptions& options = flags.options;
  const std::int64_t saves = options.save_every > 0 ? options.iterations / options.save_every + 1 : 1;
  std::int64_t bytes = 0;
  for (const Parameter& p : model.trainable_parameters())
    bytes += p.tensor->numel() * static_cast<std::int64_t>(size_of(p.tensor->dtype())) * 4;
  return static_cast<std::uint64_t>(bytes * (std::min(saves, flags.keep) + 1));
}

/// What the numbers of a run depend on besides its flags.
nlohmann::ordered_json environment_of(const CausalLM& model, const TrainingFlags& flags,
                                      const TrainingData& data) {
  const auto part = [](const TrainingSet& set) {
    const TokenDataset& shown = set.sample();
    return nlohmann::ordered_json{
        {"fingerprint", set.fingerprint()}, {"sequences", shown.size()}, {"predictions", shown.counted()}};
  };
  nlohmann::ordered_json environment{{"caldera", kVersion},
                                     {"device", model.device().to_string()},
                                     {"threads", cpu_threads()},
                                     {"seed", flags.options.seed},
                                     {"data", {{"train", part(*data.train)}}}};
  if (data.stream != nullptr) {
    environment["data"]["train"]["rows"] = data.stream->rows();
    environment["data"]["train"]["bytes"] = data.stream->bytes();
  }
  if (data.valid) environment["data"]["valid"] = part(*data.valid);
  return environment;
}

std::unique_ptr<TrainObserver> make_log(const std::string& path) {
  if (path.empty()) return nullptr;
  if (fs::path(path).extension() == ".csv") return std::make_unique<CsvLogObserver>(path);
  return std::make_unique<JsonLogObserver>(path);
}

LengthHistogram histogram_of_lengths(const TokenDataset& data) {
  constexpr std::int64_t kBins = 40;
  std::vector<std::int64_t> lengths;
  for (std::int64_t i = 0; i < data.size(); ++i)
    for (std::int64_t which = 0; which < data.sequences_per_example(); ++which)
      lengths.push_back(std::ssize(data.tokens(i, which)));
  const std::int64_t longest = *std::ranges::max_element(lengths);
  LengthHistogram histogram{.width = longest / kBins + 1, .counts = {}};
  histogram.counts.resize(static_cast<std::size_t>(longest / histogram.width + 1));
  for (const std::int64_t length : lengths)
    ++histogram.counts[static_cast<std::size_t>(length / histogram.width)];
  return histogram;
}

/// The part of the report that is known before the run.
RunReport begin_report(const TrainingFlags& flags, const TrainingData& data,
                       const nlohmann::ordered_json& environment) {
  RunReport report{.title = fs::path(flags.out).lexically_normal().string(),
                   .lengths = histogram_of_lengths(data.train->sample())};
  for (const Setting& setting : flags.settings) report.settings.emplace_back(setting.name, setting.text());
  const nlohmann::ordered_json flat = environment.flatten();
  for (const auto& [name, value] : flat.items())
    report.environment.emplace_back(name.substr(1),
                                    value.is_string() ? value.get<std::string>() : value.dump());
  return report;
}

/// What rank 0 alone shows and writes.
void forget_outputs(TrainingFlags& flags) {
  for (std::string* path : {&flags.log, &flags.report, &flags.tensorboard, &flags.sample_prompt})
    path->clear();
  flags.serve_report.reset();
}

}  // namespace

void TrainingFlags::declare_settings(Arguments& args, const std::string& name) {
  args.option(name, settings_file_,
              "Read flags from there, under their names (rank: 8); those of the command line win. Each run "
              "writes such a file, run.yaml, into --out, and --resume reads it")
      .type_name("FILE.yaml");
}

void TrainingFlags::declare_checkpoint(Arguments& args) {
  args.option("--checkpoint", checkpoint,
              "Compute parts of the layers again in the backward pass instead of keeping them: as much as "
              "--memory-limit asks for (auto), nothing (none), or all but each layer's input (layer)")
      .one_of({"auto", "none", "layer"})
      .type_name("WHAT")
      .show_default();
}

void TrainingFlags::declare(Arguments& args) {
  args_ = args;
  const std::int64_t most = std::int64_t{1} << 40;  // keeps products of two within 64 bits
  data.declare(args);
  data.declare_split(args);
  args.option("--out", out, "Folder to write").required().type_name("DIR");
  const Option iterations = args.option("--iterations", options.iterations, "Optimiser steps")
                                .type_name("N")
                                .check(integer_in(1, most))
                                .show_default();
  args.option("--epochs", epochs, "Passes over the data, instead of --iterations")
      .type_name("N")
      .check(integer_in(1, 1 << 20))
      .excludes(iterations);
  args.option("--batch-size", options.batch_size, "Sequences a batch")
      .type_name("N")
      .check(integer_in(1, 1 << 20))
      .show_default();
  args.option("--seq-len", seq_len,
              fmt::format("Most tokens a sequence (default: {}, or the model's positions if fewer)",
                          kTrainingSeqLen))
      .type_name("N")
      .check(integer_in(1, 1 << 24));
  args.option("--grad-accumulation", options.grad_accumulation, "Batches a step")
      .type_name("N")
      .check(integer_in(1, 1 << 20))
      .show_default();
  optimizer.declare(args, options);
  args.flag(
      "--packing", packing,
      "Fill rows of --seq-len with several sequences, which do not see one another, instead of padding");
  args.flag("--dry-run", dry_run,
            "Show the first examples, with what counts in colour, lengths and numbers of batches, and stop");
  declare_checkpoint(args);
  sharing.declare(args);
  args.option("--val-every", options.val_every,
              "Steps between validations; 0 validates before and after only")
      .type_name("N")
      .check(integer_in(0, most))
      .show_default();
  args.option("--val-batches", options.val_batches, "Batches a validation; -1 takes all")
      .type_name("N")
      .check(integer_in(-1, most))
      .show_default();
  declare_seed(args, options.seed, "Seed of weights, data order and dropout");
  declare_dtype(args, dtype, "What is computed in; what is trained stays f32, and f16 scales the loss");
  args.option(
          "--log", log,
          "Write a JSON object a step and validation there, as they come, or rows of CSV; an earlier file is "
          "replaced when the training begins, or gone on with")
      .type_name("FILE.jsonl|FILE.csv");
  args.option("--sample-prompt", sample_prompt,
              "With each validation, show how the model continues this (and in --report)")
      .type_name("S");
  args.option("--sample-tokens", sample_tokens, "Most tokens of such a sample")
      .type_name("N")
      .check(integer_in(1, 1 << 20))
      .show_default();
  args.option("--tensorboard", tensorboard, "Write event files for TensorBoard into this folder")
      .type_name("DIR");
  args.option("--report", report,
              "Write a page with the run's charts, settings and environment there; it is kept up to date "
              "while the "
              "run goes on")
      .type_name("FILE.html");
  args.option(
          "--serve-report", serve_report,
          "Show that page (without --report: --out/report.html) at http://127.0.0.1:PORT/ while the run goes "
          "on; 0 takes a free port")
      .type_name("PORT")
      .check(integer_in(0, 65535));
  args.option("--save-every", options.save_every,
              "Steps between checkpoints, --out/checkpoint-STEP; 0 writes one at the end only")
      .type_name("N")
      .check(integer_in(0, most))
      .show_default();
  args.option("--keep", keep, "Checkpoints that are kept: the newest, and the best")
      .type_name("N")
      .check(integer_in(1, most))
      .show_default();
  resume_option_ =
      args.option(
              "--resume", resume_,
              "Go on from the newest checkpoint in --out, or in PATH, bit for bit (on the CPU) as if the run "
              "had not stopped; where --out holds none, begin")
          .type_name("[PATH]")
          .optional_value();
  args.flag("--overwrite", overwrite,
            "Replace what another run left in --out, once there is a checkpoint to do it with");
  args.flag("--best", best,
            "Hand out what had the lowest validation loss (of grpo: the highest reward), not the last");
  args.option("--patience", options.patience,
              "End after so many validations in a row without a lower loss, and hand out the best; 0 is off")
      .type_name("N")
      .check(integer_in(0, most))
      .show_default();
}

void TrainingFlags::apply() {
  optimizer.apply(options);
  options.checkpointing = checkpoint == "none"    ? Checkpointing::none
                          : checkpoint == "layer" ? Checkpointing::layer
                                                  : Checkpointing::automatic;
  options.packing = packing ? Packing::best_fit : Packing::none;
}

void TrainingFlags::check(const std::vector<const char*>& outputs) {
  if (options.val_batches == 0)
    throw UsageError("--val-batches: 0 would validate on nothing; use -1 for all");
  settings = settings_of(args_);
  apply();
  sharing.apply(options, settings);
  best = best || options.patience > 0;
  if (best && options.val_every == 0)
    throw UsageError("--best and --patience compare validations: give --val-every a number of steps");
  options.save_best = best;
  if (serve_report && !can_serve_pages())
    throw UsageError("--serve-report: this program was built without cpp-httplib; --report writes the page");
  if (serve_report && report.empty()) report = (fs::path(out) / "report.html").string();
  if (distributed::started_rank() > 0) return find_resumed_state(outputs.front());
  check_output_folder(out, outputs, "--out");
  // What is within --out may have no folder yet.
  if (!log.empty() && !is_within(log, out)) check_output_file(log, "--log");
  if (!report.empty() && !is_within(report, out)) check_output_file(report, "--report");
  if (!tensorboard.empty() && !is_within(tensorboard, out))
    check_output_folder(tensorboard, {}, "--tensorboard");
  find_resumed_state(outputs.front());
}

void TrainingFlags::find_resumed_state(const char* marker) {
  if (resume_option_.given()) {
    resumed_state = find_train_state(resume_.empty() ? out : resume_);
    if (!resumed_state && !resume_.empty())
      throw FileError(
          fmt::format("--resume {}: there is no checkpoint (a folder with {})", resume_, kTrainStateFile));
  }
  const bool in_place = resume_option_.given() && (resume_.empty() || is_within(resume_, out));
  if (in_place || overwrite) return;
  std::error_code error;
  if (fs::exists(fs::path(out) / marker, error) || !checkpoint_steps(out).empty())
    throw FileError(fmt::format(
        "--out {}: holds what another run has trained; give --overwrite to replace it, --resume to "
        "go on with it, or name another folder",
        out));
}

std::int64_t choose_seq_len(std::optional<std::int64_t> asked, std::int64_t otherwise,
                            const ModelConfig& config) {
  const std::int64_t positions = config.max_positions();
  if (!asked) return std::min(otherwise, positions);
  if (*asked > positions)
    throw ValueError(
        fmt::format("--seq-len {}: the model has {} positions; give at most as many", *asked, positions));
  return *asked;
}

TrainingData load_training_data(TrainingFlags& flags, const Tokenizer& tokenizer, const ModelConfig& config,
                                ChatFormat* chat) {
  flags.data.check_large_files();
  flags.data.least_held = flags.options.batch_size;
  if (flags.options.val_batches > 0)
    flags.data.most_held = flags.options.val_batches * flags.options.batch_size;
  TrainingData data = flags.data.load(tokenizer, choose_seq_len(flags.seq_len, kTrainingSeqLen, config),
                                      flags.options.seed, chat);
  check_fits(data.train->sample(), config);
  if (data.valid) check_fits(*data.valid, config);
  return data;
}

nlohmann::ordered_json run_training(const ObjectiveModels& models, TrainingFlags& flags,
                                    const TrainingData& data, const RunOutput& output) {
  CausalLM& model = models.policy();
  TrainOptions& options = flags.options;
  if (flags.epochs) options.iterations = steps_for_epochs(*flags.epochs, *data.train, options);
  flags.optimizer.apply_warmup(options);
  const auto note = [](const std::string& line) {
    if (distributed::started_rank() == 0) fmt::print(stderr, "{}\n", line);
  };

  if (distributed::is_started()) note(describe_ranks(model.device()));
  const nlohmann::ordered_json environment = environment_of(model, flags, data);
  RunFolder folder(flags.out,
                   {.marker = output.marker,
                    .keep = flags.keep,
                    .replace = flags.overwrite,
                    .notes = {{kSettingsFile, write_settings(flags.settings, "The flags of this run")},
                              {"environment.json", environment.dump(2) + "\n"}}},
                   output.write);
  const bool writes = distributed::started_rank() == 0;
  if (writes) {
    folder.open();
    folder.check_space(bytes_of_checkpoints(model, flags));
  }
  std::optional<TrainState> from;
  if (flags.resumed_state) {
    try {
      from = read_train_state(*flags.resumed_state, model.device());
    } catch (const FileError& error) {
      throw FileError(fmt::format("{}; remove that checkpoint to go on from the one before", error.what()));
    }
    note(fmt::format("going on after step {} of {}", from->step, options.iterations));
    for (const std::string& change : changed_settings(fs::path(flags.out) / kSettingsFile, flags.settings))
      note(fmt::format("note: {}: the run is no longer the one that began", change));
  }
  RunControl control(writes ? &folder : nullptr, output.write, std::move(from), flags.best, note);

  ProgressObserver progress;
  std::vector<TrainObserver*> observers;
  if (writes) observers.push_back(&progress);
  if (!writes) forget_outputs(flags);
  const std::unique_ptr<TrainObserver> log = make_log(flags.log);
  if (log) observers.push_back(log.get());
  std::optional<EventLogObserver> events;
  if (!flags.tensorboard.empty()) observers.push_back(&events.emplace(flags.tensorboard));
  std::optional<ReportObserver> report;
  std::optional<SampleObserver> samples;
  if (!flags.sample_prompt.empty())
    observers.push_back(&samples.emplace(model, output.tokenizer, flags.sample_prompt, flags.sample_tokens,
                                         [&](std::int64_t step, const std::string& text) {
                                           note(fmt::format("sample after step {}: {}", step, text));
                                           if (report) report->add_sample(step, text);
                                         }));
  if (!flags.report.empty())
    observers.push_back(&report.emplace(flags.report, begin_report(flags, data, environment)));
  std::unique_ptr<ServedReport> served;
  if (flags.serve_report) {
    served = serve_report(flags.report, static_cast<int>(*flags.serve_report));
    note(fmt::format("report: {}", served->url()));
  }
  const TrainResult result = train(models, *make_objective(flags.objective), *data.train,
                                   data.valid ? &*data.valid : nullptr, options, observers, &control);

  if (data.stream != nullptr) {
    const std::string lost = describe_losses(data.stream->losses(), data.train->sample().seq_len());
    if (!lost.empty()) note(fmt::format("of the rows that were read{}", lost.substr(1)));
  }
  const bool hands_out_best = flags.best && result.best;
  nlohmann::ordered_json summary = nlohmann::ordered_json::parse(to_json_line(result.last_step));
  summary["val_loss"] = or_null(result.final_val_loss);
  for (const Metric& metric : result.final_val_metrics)
    summary["val_" + metric.name] = nine_digits(metric.value);
  summary["initial_val_loss"] = or_null(result.initial_val_loss);
  summary["final_val_loss"] =
      or_null(hands_out_best ? std::optional(result.best->loss) : result.final_val_loss);
  if (result.best) {
    summary["best_step"] = result.best->step;
    summary["best_val_loss"] = nine_digits(result.best->loss);
  }
  summary["iterations"] = options.iterations;
  if (result.end == TrainEnd::stopped) summary["stopped"] = "interrupted";
  if (result.end == TrainEnd::no_progress) summary["stopped"] = "no progress";
  summary["trainable_parameters"] = model.trainable_parameter_count();
  summary["total_parameters"] = model.parameter_count();
  summary["peak_bytes"] = result.peak_bytes;
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0)
    summary["peak_resident_bytes"] = static_cast<std::uint64_t>(usage.ru_maxrss) * 1024;
  if (result.memory) {
    summary["predicted_peak_bytes"] = result.memory->predicted_peak_bytes;
    summary["checkpointed_layers"] = result.memory->checkpointed_layers;
    summary["recomputed"] = nine_digits(result.memory->recomputed);
  }
  return summary;
}

void print_trained(const nlohmann::ordered_json& trained, const char* command, const char* what,
                   const std::string& out) {
  if (distributed::started_rank() > 0) return;
  const std::string stopped = trained.value("stopped", "");
  if (!stopped.empty())
    fmt::print("stopped after step {} of {}{}\n", trained["step"].get<std::int64_t>(),
               trained["iterations"].get<std::int64_t>(),
               stopped == "interrupted"
                   ? fmt::format("; to go on: caldera {} --out {} --resume", command, out)
                   : std::string(": the validation loss no longer falls"));
  if (!trained["initial_val_loss"].is_null() && stopped != "interrupted")
    fmt::print("validation loss {:.4f} before, {:.4f} after\n", trained["initial_val_loss"].get<double>(),
               trained["final_val_loss"].get<double>());
  fmt::print("{}: {}\n", what, out);
}

}  // namespace caldera::cli
