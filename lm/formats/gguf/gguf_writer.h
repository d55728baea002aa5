// Writes GGUF files, version 3. Private to lm/formats/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "engine/tensor/shape.h"
#include "lm/formats/gguf/gguf_value.h"

namespace caldera {

class StagedFiles;

namespace detail {

/// A value as bytes of the format, its type first.
struct EncodedGgufValue {
  std::vector<std::byte> bytes;
};

/// The kinds of values that files of models have, each with the type that llama.cpp writes it in.
using GgufWritten = std::variant<std::uint32_t, float, bool, std::string, std::vector<std::string>,
                                 std::vector<float>, std::vector<std::int32_t>, EncodedGgufValue>;

class GgufWriter {
 public:
  void add(std::string key, GgufWritten value) { metadata_.emplace_back(std::move(key), std::move(value)); }
  /// A value of another file, as it is there; it is copied.
  void add(std::string key, const GgufValue& value);
  bool has(const std::string& key) const;

  /// A tensor of ggml's type number `type`; `shape` slowest axis first. `make` makes its bytes when their
  /// turn comes. Throws ValueError for a shape that the type cannot have.
  void add_tensor(std::string name, std::uint32_t type, const Shape& shape,
                  std::function<std::vector<std::byte>()> make);
  std::size_t tensor_count() const { return tensors_.size(); }

  /// Adds the file to `files`, which the caller commits. Throws FileError where writing fails.
  void write(StagedFiles& files, const std::filesystem::path& path) const;

 private:
  struct Tensor {
    std::string name;
    std::uint32_t type;
    Shape shape;
    std::uint64_t bytes;
    std::function<std::vector<std::byte>()> make;
  };

  std::vector<std::byte> header() const;

  std::vector<std::pair<std::string, GgufWritten>> metadata_;
  std::vector<Tensor> tensors_;
};

}  // namespace detail
}  // namespace caldera
