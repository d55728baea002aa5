// Adapters in the formats of other programs: PEFT's, mlx-lm's and llama.cpp's.
#pragma once

#include <cstdint>
#include <filesystem>

namespace caldera {

class CausalLM;

enum class AdapterFormat : std::uint8_t {
  peft,  ///< a folder: adapter_config.json, adapter_model.safetensors
  mlx,   ///< a folder of mlx-lm: adapter_config.json, adapters.safetensors
  gguf,  ///< a file of GGUF, as llama.cpp takes it with --lora
};

/// Reads an adapter in any of the formats and writes it at `out` in another: a folder, or a file of GGUF. The
/// model, whose weights are not read, says what modules there are. What a format has no word for is brought
/// into what it has: other scales go into B, in mlx's files smaller ranks are filled with zeros. Throws
/// FileError for an adapter that does not fit the model, and for what a format cannot say (DoRA in GGUF,
/// score heads but in PEFT).
void convert_adapter(CausalLM& model, const std::filesystem::path& adapter, AdapterFormat to,
                     const std::filesystem::path& out);

}  // namespace caldera
