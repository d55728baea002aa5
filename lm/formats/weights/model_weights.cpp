#include "lm/formats/weights/model_weights.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/error.h"
#include "lm/base/json_file.h"

namespace caldera {
namespace {

/// A shard must be a plain file name. (It may be a symbolic link: that is how the Hugging Face cache stores
/// files.)
bool is_plain_file_name(const std::string& text) {
  return !text.empty() && text != "." && text != ".." &&
         text.find_first_of(std::string("/\\\0", 3)) == text.npos;
}

}  // namespace

ModelWeights ModelWeights::open(const std::filesystem::path& model_dir) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(model_dir, ignored)) {
    throw FileError(fmt::format("{}: there is no such model folder", model_dir.string()));
  }
  ModelWeights weights(model_dir);
  const auto single = model_dir / "model.safetensors";
  const auto index = model_dir / "model.safetensors.index.json";
  if (std::filesystem::exists(single, ignored)) {
    weights.add(SafetensorsFile::open(single));
    const auto& file = weights.files_.front();
    for (const auto& name : file.names()) {
      weights.owner_.emplace(name, 0);
      weights.names_.push_back(name);
    }
  } else if (std::filesystem::exists(index, ignored)) {
    weights.add_sharded(index);
  } else {
    throw FileError(
        fmt::format("{}: the folder holds neither model.safetensors nor model.safetensors.index.json",
                    model_dir.string()));
  }
  return weights;
}

void ModelWeights::add(SafetensorsFile file) {
  for (const auto& [key, value] : file.metadata()) metadata_.emplace(key, value);
  files_.push_back(std::move(file));
}

void ModelWeights::add_sharded(const std::filesystem::path& index_path) {
  const auto where = index_path.string();
  const auto root = detail::read_json_object(index_path);
  const auto* map = detail::JsonFields(root, where).find("weight_map");
  if (map == nullptr || !map->is_object() || map->empty()) {
    throw FileError(fmt::format("{}: field 'weight_map' must be a non-empty object", where));
  }

  std::map<std::string, std::vector<std::string>> shards;
  for (const auto& [tensor, file] : map->items()) {
    if (!file.is_string()) {
      throw FileError(
          fmt::format("{}: weight_map of '{}' is not a string", where, detail::printable(tensor)));
    }
    const auto& name = file.get_ref<const std::string&>();
    if (!is_plain_file_name(name)) {
      throw FileError(
          fmt::format("{}: weight_map of '{}' names '{}', which is not a file in the model's folder", where,
                      detail::printable(tensor), detail::printable(name)));
    }
    shards[name].push_back(tensor);
  }
  for (const auto& [name, tensors] : shards) {
    const std::size_t index = files_.size();
    add(SafetensorsFile::open(dir_ / name));
    for (const auto& tensor : tensors) {
      if (!files_.back().contains(tensor)) {
        throw FileError(
            fmt::format("{}: tensor '{}' is not in its shard {}", where, detail::printable(tensor), name));
      }
      owner_.emplace(tensor, index);
    }
    for (const auto& tensor : files_.back().names()) {
      const auto owner = owner_.find(tensor);
      if (owner != owner_.end() && owner->second == index) names_.push_back(tensor);
    }
  }
}

const SafetensorsFile& ModelWeights::file_of(std::string_view name) const {
  const auto it = owner_.find(std::string(name));
  if (it == owner_.end()) {
    throw FileError(fmt::format("{}: the model has no tensor '{}'", dir_.string(), detail::printable(name)));
  }
  return files_[it->second];
}

}  // namespace caldera
