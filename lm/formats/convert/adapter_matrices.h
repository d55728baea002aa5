// The matrices of a LoRA adapter, and the files of GGUF that hold them. Private to lm/.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "lm/formats/config/model_config.h"

namespace caldera {

class StagedFiles;

namespace detail {

/// Holds what stands beside one projection: scale * B A.
struct AdapterMatrix {
  std::string path;  ///< of the projection, in Hugging Face's names
  std::int64_t rank = 0, in = 0, out = 0;
  std::vector<float> a;  ///< (rank, in)
  std::vector<float> b;  ///< (out, rank)
  double scale = 1;
  std::vector<float> magnitude;  ///< of DoRA: (out); else empty
};

/// Adds a file as llama.cpp's convert_lora_to_gguf.py writes it: tensors "<tensor of the model>.lora_a" and
/// ".lora_b" in f32, and "adapter.lora.alpha", by which llama.cpp scales with alpha / rank; rows of B lie as
/// those of the model's tensor do. Throws FileError for a family or a module that GGUF has no name for, and
/// for DoRA.
void write_gguf_adapter(StagedFiles& files, const std::filesystem::path& path, const ModelConfig& config,
                        const std::vector<AdapterMatrix>& matrices);

/// Reads such a file. Throws FileError for one that is no adapter, or of another family than the model's.
std::vector<AdapterMatrix> read_gguf_adapter(const std::filesystem::path& path, const ModelConfig& config);

}  // namespace detail
}  // namespace caldera
