// Helpers that read and write the tensors of models and adapters. Private to training/.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "training/io/safetensors.h"
#include "training/nn/module.h"

namespace caldera::detail {

/// Collects what is wrong with the tensors of a file, to report all of it in one line.
class TensorProblems {
 public:
  void missing(const std::string& name, const Shape& expected);
  void unexpected(const std::string& name);
  /// Notes a shape other than `expected`, or a dtype that is not floating.
  void check(const std::string& name, const Shape& expected, const TensorInfo& found);
  /// Throws FileError "where: problem; problem; ... and 12 more" if anything was noted.
  void throw_if_any(const std::string& where) const;

 private:
  std::vector<std::string> lines_;
};

/// Whether a parameter belongs to a LoRA adapter, and not to the model beneath it: by its name.
bool is_lora_factor(const Parameter& parameter);

/// Evaluates `parameters` and adds a file with them to `files`, each under `prefix` + its name.
void write_parameters(StagedFiles& files, const std::filesystem::path& path,
                      const std::vector<Parameter>& parameters, const std::string& prefix);

/// Creates the folder and its parents. Throws FileError.
void create_folder(const std::filesystem::path& dir);

}  // namespace caldera::detail
