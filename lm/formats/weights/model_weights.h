// The weights of a Hugging Face model folder: one safetensors file, or shards with an index.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lm/formats/safetensors/safetensors.h"

namespace caldera {

/// The tensors of a model folder under one roof, looked up as in SafetensorsFile. Takes `model.safetensors`
/// if it is there, else `model.safetensors.index.json` and the shards it lists. All files are opened, and
/// every name in the index is checked against its shard, before open returns. A const object may be used from
/// several threads.
class ModelWeights {
 public:
  /// Throws FileError for a missing or malformed file, a shard outside of the folder, or a tensor that its
  /// shard lacks.
  static ModelWeights open(const std::filesystem::path& model_dir);

  /// Names in file order, shard after shard (in the order of the shards' names). With an index, only names it
  /// lists.
  const std::vector<std::string>& names() const { return names_; }
  bool contains(std::string_view name) const { return owner_.contains(std::string(name)); }
  /// These throw FileError for a name that is not there.
  const TensorInfo& info(std::string_view name) const { return file_of(name).info(name); }
  std::span<const std::byte> bytes(std::string_view name) const { return file_of(name).bytes(name); }
  std::vector<float> read_f32(std::string_view name) const { return file_of(name).read_f32(name); }
  /// Metadata of all files together; the first file to define a key wins.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }

 private:
  explicit ModelWeights(std::filesystem::path dir) : dir_(std::move(dir)) {}
  const SafetensorsFile& file_of(std::string_view name) const;
  void add(SafetensorsFile file);
  void add_sharded(const std::filesystem::path& index_path);

  std::filesystem::path dir_;
  std::vector<SafetensorsFile> files_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, std::size_t> owner_;  ///< tensor name -> index in files_
  std::map<std::string, std::string> metadata_;
};

}  // namespace caldera
