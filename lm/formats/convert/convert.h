// Writes a model in another format, or with its weights in another type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace caldera {

class StagedFiles;

enum class ModelFormat : std::uint8_t { safetensors, gguf, mlx };

struct ConvertOptions {
  ModelFormat to = ModelFormat::safetensors;
  /// The type that matrices are stored as, one of weight_types(to); empty is the first of them. Of quantised
  /// types: vectors, and matrices whose rows are no whole blocks, are stored as floats.
  std::string type = {};
};

struct Converted {
  std::filesystem::path out;
  std::size_t tensors = 0;
  std::uint64_t bytes = 0;  ///< of the weights' file
  /// Counts the matrices that a type of few bits is for, and those of them that stay floats all the same, as
  /// their rows are no whole blocks.
  std::size_t matrices = 0;
  std::size_t matrices_as_floats = 0;
};

/// Lists the types that a format can store matrices as, the default first.
std::vector<std::string> weight_types(ModelFormat format);

/// Reads the model at `path` (see ModelFiles) and writes it at `out`: a folder, or a file of GGUF. With it go
/// its configuration, its tokenizer and its chat template. Weights pass through the memory one by one. Files
/// are replaced once all are written. Throws FileError for a model that cannot be read, or has what the
/// format does not, and where writing fails; ValueError for a type that the format has not, and for weights
/// that a type does not hold (infinities, say).
Converted convert_model(const std::filesystem::path& path, const std::filesystem::path& out,
                        const ConvertOptions& options);

/// Adds to `files` what a folder of the model at `path` has beside its configuration and weights: tokenizer,
/// chat template, how it generates. A GGUF file's are made of its vocabulary. The caller commits them into
/// `folder`. Throws FileError.
void add_tokenizer_files(StagedFiles& files, const std::filesystem::path& path,
                         const std::filesystem::path& folder);

}  // namespace caldera
