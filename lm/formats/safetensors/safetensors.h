// Reading and writing safetensors files (format: https://github.com/huggingface/safetensors).
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lm/formats/safetensors/tensor_info.h"

namespace caldera {

class StagedFiles;

/// A safetensors file, mapped into memory read-only. Opening validates the header completely (see
/// safetensors_header.h) and reads no tensor data. Movable; a const object may be used from several threads.
/// Spans that it hands out live as long as it does, moves included.
///
/// The mapping trusts the file system in one point: a file that another process truncates later faults on
/// access.
class SafetensorsFile {
 public:
  /// Throws FileError, with one line naming the file and what is wrong in it.
  static SafetensorsFile open(const std::filesystem::path& path);

  SafetensorsFile(SafetensorsFile&&) noexcept;
  SafetensorsFile& operator=(SafetensorsFile&&) noexcept;
  ~SafetensorsFile();

  /// Names in the order of their bytes in the file.
  const std::vector<std::string>& names() const;
  bool contains(std::string_view name) const;
  /// These throw FileError for a name that is not in the file.
  const TensorInfo& info(std::string_view name) const;
  /// The tensor's bytes, row-major and little-endian. They may begin at any address: copy, do not cast. U8
  /// and BOOL bytes hold whatever the file holds.
  std::span<const std::byte> bytes(std::string_view name) const;
  /// The tensor as f32, from F64, F32, F16 or BF16. Throws DTypeError for other types.
  std::vector<float> read_f32(std::string_view name) const;
  const std::map<std::string, std::string>& metadata() const;
  const std::filesystem::path& path() const;

 private:
  struct Impl;
  explicit SafetensorsFile(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// One tensor to write. The bytes are row-major and little-endian.
struct TensorToWrite {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::span<const std::byte> bytes;
};

/// One tensor to write whose bytes are made when their turn comes, so that not all need fit the memory.
struct TensorToMake {
  std::string name;
  DType dtype = DType::f32;
  Shape shape;
  std::function<std::vector<std::byte>()> make;
};

/// Writes a safetensors file: atomically (see atomic_file.h), with the data 8-byte aligned. Tensors keep
/// their order except that wider dtypes come first, so that each is naturally aligned. Throws ValueError for
/// a duplicate or reserved name, text that is not UTF-8, or bytes that do not match shape and dtype;
/// FileError when writing fails.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata = {});
/// Writes it as one of several files.
void write_safetensors(StagedFiles& files, const std::filesystem::path& path,
                       std::span<const TensorToWrite> tensors,
                       const std::map<std::string, std::string>& metadata = {});
void write_safetensors(StagedFiles& files, const std::filesystem::path& path,
                       std::span<const TensorToMake> tensors,
                       const std::map<std::string, std::string>& metadata = {});

}  // namespace caldera
