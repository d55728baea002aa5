#include "cli/training/run_control.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"

namespace caldera::cli {

RunControl::RunControl(RunFolder* folder, RunFolder::WriteModel write_model, std::optional<TrainState> from,
                       bool best_only, Note note)
    : folder_(folder),
      write_model_(std::move(write_model)),
      from_(std::move(from)),
      best_only_(best_only),
      note_(std::move(note)) {}

void RunControl::save(const TrainState& state, bool last) {
  if (folder_ == nullptr) return;
  const bool publish = !best_only_ || !state.best || state.best->step == state.step;
  try {
    folder_->save(state, publish);
    if (asked_) note_(fmt::format("checkpoint: {}", checkpoint_path(folder_->path(), state.step).string()));
  } catch (const FileError& error) {
    if (last) save_elsewhere(state, error.what());
    note_(
        fmt::format("warning: no checkpoint of step {}: {}; the training goes on", state.step, error.what()));
  }
}

void RunControl::save_elsewhere(const TrainState& state, const std::string& problem) const {
  std::string folder = (std::filesystem::temp_directory_path() / "caldera-run-XXXXXX").string();
  try {
    if (::mkdtemp(folder.data()) == nullptr) throw FileError("no temporary folder either");
    StagedFiles files;
    write_model_(folder, files);
    write_train_state(files, std::filesystem::path(folder) / kTrainStateFile, state);
    files.commit();
  } catch (const FileError& error) {
    throw FileError(fmt::format("{}; and what was trained is lost: {}", problem, error.what()));
  }
  throw FileError(fmt::format("{}; what was trained is in {}: move it from there, or go on with --resume {}",
                              problem, folder, folder));
}

}  // namespace caldera::cli
