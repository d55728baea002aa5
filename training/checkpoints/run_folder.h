// RunFolder: the folder that a training run writes: what it has trained, and checkpoints to go on from.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "training/checkpoints/run_lock.h"
#include "training/checkpoints/train_state.h"

namespace caldera {

class StagedFiles;

struct RunFolderOptions {
  /// The file without which the folder holds no model: "adapter_config.json", "config.json".
  std::string marker;
  /// Checkpoints that are kept, the newest; the best one is kept as well.
  std::int64_t keep = 2;
  /// Whether the first save replaces what another run left in the folder. Otherwise the run adds to it.
  bool replace = false;
  /// Small files that the first save writes next to the model: a name, and the text.
  std::map<std::string, std::string> notes{};
};

/// Inside of the folder:
///
///     adapter_config.json, adapter_model.safetensors   what loads: the adapter (or a model's files)
///     checkpoint-100/, checkpoint-200/                 the same, and training_state.safetensors
///     run.yaml, …                                      the notes
///
/// Each checkpoint appears whole, under a name that no half one ever has; what loads is replaced by one
/// rename, or, where its configuration changes, by an exchange of the whole folder. So a kill at any moment
/// leaves a folder in which everything loads, and files whose names say that they are left over, which the
/// next run removes. Until its first save a run changes nothing of what it replaces.
///
/// Use from one thread. Errors of the file system are FileError.
class RunFolder {
 public:
  /// Adds what loads to `files`, as files of the folder that it is called with.
  using WriteModel = std::function<void(const std::filesystem::path& folder, StagedFiles& files)>;

  RunFolder(std::filesystem::path path, RunFolderOptions options, WriteModel write_model);

  /// Removes the folder where open() created it and nothing came into it.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  /// Creates the folder, locks it against other runs and removes what a crash left in it.
  void open();

  /// Throws FileError unless the disk has room for `bytes` more, or cannot tell. Leaves nothing there.
  void check_space(std::uint64_t bytes) const;

  /// Saves a checkpoint "checkpoint-STEP" and drops old ones. `publish`: what loads becomes the model as it
  /// is now. The first save always does that where the folder would be without a model otherwise.
  void save(const TrainState& state, bool publish);

  const std::filesystem::path& path() const { return path_; }

 private:
  void fill(const std::filesystem::path& folder, const TrainState& state) const;
  void write_notes(const std::filesystem::path& folder) const;
  /// False where it cannot be done in one step; nothing is changed then.
  bool replace_all(const std::filesystem::path& checkpoint, const TrainState& state, bool publish);
  void publish(const std::filesystem::path& checkpoint) const;
  void drop_old(const TrainState& state) const;

  std::filesystem::path path_;
  RunFolderOptions options_;
  WriteModel write_model_;
  std::unique_ptr<RunLock> lock_;
  std::vector<std::filesystem::path> created_;  // by this run, the innermost first
  bool saved_ = false;
};

/// The steps of the checkpoints in a run's folder, ascending.
std::vector<std::int64_t> checkpoint_steps(const std::filesystem::path& run_folder);
/// The folder of a checkpoint.
std::filesystem::path checkpoint_path(const std::filesystem::path& run_folder, std::int64_t step);
/// The state file that `path` means: of a checkpoint's folder, or of the newest checkpoint of a run's folder;
/// nothing where there is none.
std::optional<std::filesystem::path> find_train_state(const std::filesystem::path& path);

}  // namespace caldera
