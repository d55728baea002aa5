// Checkpoints of the eager API: variables, the optimiser's state and how far a run has come, in one file.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "eager/optimizer.h"
#include "eager/var.h"

namespace caldera::v1 {

struct CheckpointMetadata {
  std::int64_t global_step = 0;
  double loss = 0;
  double learning_rate = 0;
  std::int64_t timestamp = 0;  ///< seconds since 1970, UTC

  /// The present time.
  static std::int64_t now();
  bool operator==(const CheckpointMetadata&) const = default;
};

/// Writes the variables under their names, and with `optimizer` their moments and step numbers, as one
/// safetensors file. A file that is there is replaced at once or not at all. Throws CheckpointError
/// (SaveFailed).
void save_checkpoint(const std::filesystem::path& path, const std::map<std::string, Var>& variables,
                     const CheckpointMetadata& metadata, const AdamW* optimizer = nullptr);

/// Sets the variables, and with `optimizer` its state, to what the file holds: a run then goes on bit for
/// bit. Throws CheckpointError: LoadFailed for a file that is not there and for tensors that are missing,
/// unexpected or of another shape, naming them; InvalidFormat for a file that is no checkpoint. Nothing has
/// changed then.
CheckpointMetadata load_checkpoint(const std::filesystem::path& path,
                                   const std::map<std::string, Var>& variables, AdamW* optimizer = nullptr);

}  // namespace caldera::v1
