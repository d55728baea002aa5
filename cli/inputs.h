// What several commands read: model folders with an adapter on top, and lists of token ids.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "training/models/llama.h"

namespace caldera::cli {

/// The model in `dir` on `device`, in evaluation mode, with the adapter in `adapter` applied unless that is
/// empty.
std::unique_ptr<Llama> load_model(const std::filesystem::path& dir, const std::filesystem::path& adapter,
                                  Device device, DType dtype = DType::f32);

/// "f32", "f16" or "bf16", as --dtype gives it.
DType parse_dtype(const std::string& text);

/// "1 2 3" or "1,2,3". Throws UsageError, naming `flag`, for anything that is not a list of whole numbers,
/// and ValueError for one that no vocabulary holds.
std::vector<std::int32_t> parse_ids(const std::string& text, const char* flag);

}  // namespace caldera::cli
