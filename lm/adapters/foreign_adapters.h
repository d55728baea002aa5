// Reads adapters that are not PEFT's. Private to lm/.
#pragma once

#include <filesystem>
#include <optional>

#include "lm/adapters/adapter_factors.h"
#include "lm/formats/config/model_config.h"

namespace caldera::detail {

/// The weights of mlx-lm's folders, and the configuration beside them.
inline constexpr const char* kMlxAdapterFile = "adapters.safetensors";
inline constexpr const char* kMlxAdapterConfig = "adapter_config.json";

/// Reads a file of GGUF or a folder of mlx-lm; nothing for anything else. The factors are not checked against
/// the model yet. Throws FileError.
std::optional<AdapterFactors> read_foreign_adapter(const ModelConfig& config,
                                                   const std::filesystem::path& path);

}  // namespace caldera::detail
