// Writes the parameters of a model or an adapter to files. Private to lm/.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lm/nn/module.h"

namespace caldera {

class StagedFiles;

namespace detail {

/// Whether a parameter belongs to a LoRA adapter, and not to the model beneath it: by its name.
bool is_lora_factor(const Parameter& parameter);

/// Evaluates `parameters` and adds a file with them to `files`, each under `prefix` + its name.
void write_parameters(StagedFiles& files, const std::filesystem::path& path,
                      const std::vector<Parameter>& parameters, const std::string& prefix);

/// Creates the folder and its parents. Throws FileError.
void create_folder(const std::filesystem::path& dir);

}  // namespace detail
}  // namespace caldera
