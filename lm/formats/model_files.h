// ModelFiles: what a model consists of on disk, in whichever format: a Hugging Face folder or a GGUF file.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lm/formats/weights/stored_weight.h"

namespace caldera {

/// The configuration and the weights of a model, as Hugging Face has them:
///
/// - a folder with config.json and model.safetensors or its shards, its weights plain or quantised by
///   bitsandbytes, MLX, GPTQ, AWQ, FP8 or MXFP4 (docs/guide/formats.md says in which forms);
/// - a GGUF file, or the first of the parts that one was split into ("-00001-of-00003.gguf"). Its metadata
///   become config.json's fields, its tensors have Hugging Face's names, and what llama.cpp's converter did
///   to them (rows of q and k permuted, 1 added to Gemma's norms) is undone as they are read.
///
/// All files are opened and checked before open returns; no weight is read before it is asked for. Movable; a
/// const object may be used from several threads.
class ModelFiles {
 public:
  /// Throws FileError for files that are missing, malformed, of an unknown family (of a GGUF file) or in a
  /// format that is not supported.
  static ModelFiles open(const std::filesystem::path& path);
  ModelFiles(ModelFiles&&) noexcept;
  ModelFiles& operator=(ModelFiles&&) noexcept;
  ~ModelFiles();

  /// The folder or file.
  const std::filesystem::path& path() const;
  /// The text of config.json. What says how weights are quantised is left out: weights say it themselves.
  const std::string& config() const;
  /// Returns what messages about the configuration begin with.
  const std::string& config_where() const;

  /// Names of the weights, in the order of the files.
  const std::vector<std::string>& names() const;
  bool contains(std::string_view name) const;
  /// Throws FileError for a name that is not there.
  const StoredWeight& weight(std::string_view name) const;

 private:
  struct Impl;
  explicit ModelFiles(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

namespace detail {

/// A model's configuration alone: its text, and what messages about it begin with.
struct ConfigText {
  std::string text;
  std::string where;
};

/// The configuration of a model folder, a GGUF file, or of a config.json (or any file of that form) itself.
/// Throws FileError.
ConfigText read_config_text(const std::filesystem::path& path);

/// Whether a path means a GGUF file: it ends in ".gguf" and is no folder.
bool is_gguf_path(const std::filesystem::path& path);

}  // namespace detail
}  // namespace caldera
