// Reads GGUF files (format: ggml's docs/gguf.md), versions 2 and 3, little-endian. Private to lm/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/tensor/shape.h"
#include "lm/base/mapped_file.h"
#include "lm/formats/gguf/ggml_type.h"
#include "lm/formats/gguf/gguf_value.h"

namespace caldera::detail {

struct GgufTensor {
  std::string name;
  const GgmlType* type = nullptr;
  Shape shape;  ///< slowest axis first: the file's own order reversed
  std::span<const std::byte> bytes;
};

/// The front of a GGUF file: its metadata and where its tensors lie.
struct GgufHeader {
  std::vector<std::pair<std::string, GgufValue>> metadata;  ///< in the file's order
  std::vector<GgufTensor> tensors;                          ///< in the file's order
};

/// Parses and checks `file`, on whose bytes the result keeps views: every value is whole, keys and names are
/// unique, every tensor is aligned within the data, has exactly the bytes of its shape and type, and
/// overlaps no other. Memory is bounded by the file's size, whatever it claims. Throws FileError, beginning
/// with `where`, for anything else.
GgufHeader parse_gguf(std::span<const std::byte> file, const std::string& where);

/// A GGUF file, mapped into memory; no tensor is read before it is asked for. Views that it hands out live as
/// long as it does, moves included. A const object may be used from several threads.
class GgufFile {
 public:
  /// Throws FileError, with one line naming the file and what is wrong in it.
  static GgufFile open(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  const std::vector<GgufTensor>& tensors() const { return header_.tensors; }
  const std::vector<std::pair<std::string, GgufValue>>& metadata() const { return header_.metadata; }
  /// The value under a key, or null.
  const GgufValue* find(std::string_view key) const;

  /// Values by key; nothing where there is none. Throw FileError, naming the key, for a value of another
  /// kind.
  std::optional<std::int64_t> integer(const std::string& key) const;
  /// Returns the value of a key that may have one for each layer: all must be the same then.
  std::optional<std::int64_t> integer_of_layers(const std::string& key) const;
  std::optional<double> number(const std::string& key) const;
  std::optional<bool> boolean(const std::string& key) const;
  std::optional<std::string> string(const std::string& key) const;

  /// Throws FileError "path: key 'key' <problem>".
  [[noreturn]] void fail(std::string_view key, const std::string& problem) const;

 private:
  GgufFile(std::filesystem::path path, MappedFile mapping);

  std::filesystem::path path_;
  MappedFile mapping_;
  GgufHeader header_;
  std::unordered_map<std::string_view, const GgufValue*> by_key_;
};

}  // namespace caldera::detail
