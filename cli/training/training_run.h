// Trains: the flags, the data and the run that pretrain and finetune share.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/arguments/arguments.h"
#include "cli/arguments/settings_file.h"
#include "cli/training/data_flags.h"
#include "cli/training/optimizer_flags.h"
#include "cli/training/shared_run.h"
#include "training/checkpoints/run_folder.h"
#include "training/data/forms/chat_format.h"
#include "training/objectives/objective_options.h"
#include "training/trainer/trainer.h"

namespace caldera::cli {

/// Tokens of a sequence where neither --seq-len nor the model says otherwise.
inline constexpr std::int64_t kTrainingSeqLen = 256;

/// The training flags' values; a command sets its own defaults before it declares them.
struct TrainingFlags {
  DataFlags data;
  std::string out;
  TrainOptions options{.optimizer = {.learning_rate = 1e-4},
                       .val_every = 200,
                       .val_batches = 25,
                       .save_every = 100,
                       .try_longest = true};
  std::optional<std::int64_t> epochs;
  std::optional<std::int64_t> seq_len;
  OptimizerFlags optimizer;
  SharingFlags sharing;
  bool packing = false;
  bool dry_run = false;
  std::string checkpoint = "auto";
  ObjectiveOptions objective;
  std::string dtype = "f32";
  std::string log;
  std::string report;
  /// Port of the page of the run; 0: a free one. Nothing: it is not served.
  std::optional<std::int64_t> serve_report;
  std::string tensorboard;
  std::string sample_prompt;
  std::int64_t sample_tokens = 64;
  std::int64_t keep = 2;
  bool overwrite = false;
  bool best = false;
  /// The state to go on from; nothing where the run begins. check() finds it.
  std::optional<std::filesystem::path> resumed_state;

  /// Declares the flag `name` that names a file with settings (Command::settings_file finds it).
  void declare_settings(Arguments& args, const std::string& name);
  /// Declares the flags that this version supports.
  void declare(Arguments& args);
  /// Puts what --checkpoint, --packing and the optimiser's flags say into `options`, once. Throws UsageError.
  void apply();
  /// Applies the flags, and checks what needs neither model nor data: dtype, schedule, output paths, and what
  /// to go on from; `outputs` are the files that will be written to --out, the one that makes it a model
  /// first. Throws UsageError or FileError.
  void check(const std::vector<const char*>& outputs);

  /// All flags as they were given, or as they are by default; check() sets it.
  std::vector<Setting> settings;

 private:
  void declare_checkpoint(Arguments& args);
  void find_resumed_state(const char* marker);

  Arguments args_;
  std::string settings_file_;
  std::string resume_;
  Option resume_option_;
};

/// The sequence length to use: the one asked for, else `otherwise` or the model's positions if those are
/// fewer. Throws ValueError when the model has fewer positions than asked for.
std::int64_t choose_seq_len(std::optional<std::int64_t> asked, std::int64_t otherwise,
                            const ModelConfig& config);

/// Reads the data (DataFlags::load) and checks that they fit the model. `chat` renders conversations; null
/// refuses them.
TrainingData load_training_data(TrainingFlags& flags, const Tokenizer& tokenizer, const ModelConfig& config,
                                ChatFormat* chat = nullptr);

/// Says what a command puts into its run's folder.
struct RunOutput {
  std::string marker;  ///< see RunFolderOptions
  RunFolder::WriteModel write;
  const Tokenizer& tokenizer;  ///< of the model, for samples
};

/// Trains with progress on standard error and the log, if asked for, into the folder --out. Returns the
/// summary's fields: the last step's, "val_loss" and the objective's "val_NAME" of the last validation,
/// "initial_val_loss", "final_val_loss", "trainable_parameters", "total_parameters", "peak_bytes",
/// "peak_resident_bytes"; "stopped" where the run ended early, and the best validation as "best_step",
/// "best_val_loss".
nlohmann::ordered_json run_training(const ObjectiveModels& models, TrainingFlags& flags,
                                    const TrainingData& data, const RunOutput& output);

/// Prints for people what `trained`, the summary of run_training(), says; `command` has written `what` to
/// `out`.
void print_trained(const nlohmann::ordered_json& trained, const char* command, const char* what,
                   const std::string& out);

}  // namespace caldera::cli
