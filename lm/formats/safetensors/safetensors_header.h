// The JSON header of a safetensors file (format: https://github.com/huggingface/safetensors). Private to
// lm/formats/.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lm/formats/safetensors/tensor_info.h"

namespace caldera::detail {

/// Largest header the reference implementation accepts.
inline constexpr std::uint64_t kMaxSafetensorsHeader = 100'000'000;

struct SafetensorsEntry {
  std::string name;
  TensorInfo info;
  std::uint64_t begin = 0;  ///< first byte, counted from the end of the header
  std::uint64_t end = 0;    ///< one past the last byte
};

struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;  ///< in the order of their bytes in the file
  std::map<std::string, std::string> metadata;
};

/// Parses and validates a header in front of `data_bytes` bytes of tensor data. On return every entry is
/// within the data, its length is exactly shape * dtype, names are unique, and the entries tile the data
/// without holes or overlaps. Throws FileError, beginning with `where`, for anything else.
SafetensorsHeader parse_safetensors_header(std::string_view json, std::uint64_t data_bytes,
                                           const std::string& where);

/// The format's name of a dtype: "F32", "BOOL", ...
std::string_view safetensors_name(DType dtype);

}  // namespace caldera::detail
