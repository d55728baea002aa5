#include "lm/formats/model_files.h"

#include <fmt/format.h>

#include <unordered_map>
#include <utility>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/base/json_file.h"
#include "lm/formats/folders/folder_weights.h"
#include "lm/formats/gguf/gguf_config.h"
#include "lm/formats/gguf/gguf_split.h"
#include "lm/formats/gguf/gguf_weights.h"
#include "lm/formats/weights/model_weights.h"

namespace caldera {

struct ModelFiles::Impl {
  void add(std::vector<std::pair<std::string, StoredWeightPtr>>&& found) {
    for (auto& [name, weight] : found) {
      if (!weights.emplace(name, std::move(weight)).second)
        throw FileError(
            fmt::format("{}: two weights are named '{}'", where.string(), detail::printable(name)));
      names.push_back(name);
    }
  }

  std::filesystem::path where;
  // What the weights keep views of.
  std::vector<detail::GgufFile> gguf;
  std::unique_ptr<ModelWeights> folder;

  detail::ConfigText config;
  std::vector<std::string> names;
  std::unordered_map<std::string, StoredWeightPtr> weights;
};

ModelFiles::ModelFiles(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
ModelFiles::ModelFiles(ModelFiles&&) noexcept = default;
ModelFiles& ModelFiles::operator=(ModelFiles&&) noexcept = default;
ModelFiles::~ModelFiles() = default;

ModelFiles ModelFiles::open(const std::filesystem::path& path) {
  auto impl = std::make_unique<Impl>();
  impl->where = path;
  if (detail::is_gguf_path(path)) {
    impl->gguf = detail::open_gguf_parts(path);
    const detail::GgufFile& first = impl->gguf.front();
    const detail::GgufFamily& family = detail::family_of(first);
    impl->config = {detail::gguf_config(first, family), path.string()};
    impl->add(detail::gguf_weights(impl->gguf, family));
  } else {
    impl->folder = std::make_unique<ModelWeights>(ModelWeights::open(path));
    const auto config = path / "config.json";
    // A folder of weights alone will do for a model that was configured otherwise.
    std::error_code ignored;
    const std::string text = std::filesystem::exists(config, ignored) ? read_text_file(config) : "{}";
    detail::QuantizedFolder folder = detail::folder_weights(*impl->folder, text, config.string());
    impl->config = {std::move(folder.config), config.string()};
    impl->add(std::move(folder.weights));
  }
  return ModelFiles(std::move(impl));
}

const std::filesystem::path& ModelFiles::path() const { return impl_->where; }
const std::string& ModelFiles::config() const { return impl_->config.text; }
const std::string& ModelFiles::config_where() const { return impl_->config.where; }
const std::vector<std::string>& ModelFiles::names() const { return impl_->names; }
bool ModelFiles::contains(std::string_view name) const { return impl_->weights.contains(std::string(name)); }

const StoredWeight& ModelFiles::weight(std::string_view name) const {
  const auto it = impl_->weights.find(std::string(name));
  if (it == impl_->weights.end()) {
    throw FileError(
        fmt::format("{}: the model has no tensor '{}'", impl_->where.string(), detail::printable(name)));
  }
  return *it->second;
}

bool detail::is_gguf_path(const std::filesystem::path& path) {
  std::error_code ignored;
  return path.extension() == ".gguf" && !std::filesystem::is_directory(path, ignored);
}

detail::ConfigText detail::read_config_text(const std::filesystem::path& path) {
  if (is_gguf_path(path)) {
    const GgufFile file = GgufFile::open(path);
    return {gguf_config(file, family_of(file)), path.string()};
  }
  std::error_code ignored;
  const bool is_config = path.extension() == ".json" || std::filesystem::is_regular_file(path, ignored);
  const auto config =
      is_config && !std::filesystem::is_directory(path, ignored) ? path : path / "config.json";
  return {without_quantization(read_text_file(config), config.string()), config.string()};
}

}  // namespace caldera
