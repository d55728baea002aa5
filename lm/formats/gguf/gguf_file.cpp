#include "lm/formats/gguf/gguf_file.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/error.h"
#include "lm/base/json_file.h"

namespace caldera::detail {

GgufFile::GgufFile(std::filesystem::path path, MappedFile mapping)
    : path_(std::move(path)),
      mapping_(std::move(mapping)),
      header_(parse_gguf(mapping_.bytes(), path_.string())) {
  for (const auto& [key, value] : header_.metadata) by_key_.emplace(key, &value);
}

GgufFile GgufFile::open(const std::filesystem::path& path) { return {path, MappedFile(path)}; }

const GgufValue* GgufFile::find(std::string_view key) const {
  const auto it = by_key_.find(key);
  return it == by_key_.end() ? nullptr : it->second;
}

void GgufFile::fail(std::string_view key, const std::string& problem) const {
  throw FileError(fmt::format("{}: key '{}' {}", path_.string(), printable(key), problem));
}

namespace {

template <class Get>
auto checked(const GgufFile& file, const std::string& key, const char* wanted, const Get& get)
    -> decltype(get(GgufValue{})) {
  const GgufValue* value = file.find(key);
  if (value == nullptr) return std::nullopt;
  auto result = get(*value);
  if (!result) file.fail(key, fmt::format("must be {}, not {}", wanted, name(value->type())));
  return result;
}

}  // namespace

std::optional<std::int64_t> GgufFile::integer(const std::string& key) const {
  return checked(*this, key, "an integer", [](const GgufValue& v) { return v.integer(); });
}
std::optional<std::int64_t> GgufFile::integer_of_layers(const std::string& key) const {
  const GgufValue* value = find(key);
  if (value == nullptr || !value->is_list()) return integer(key);
  const auto list = value->integers();
  if (!list || list->empty()) fail(key, "must be an integer, or a list of them");
  if (std::ranges::any_of(*list, [&](std::int64_t v) { return v != list->front(); }))
    fail(key, "differs from layer to layer, which is not supported");
  return list->front();
}
std::optional<double> GgufFile::number(const std::string& key) const {
  return checked(*this, key, "a number", [](const GgufValue& v) { return v.number(); });
}
std::optional<bool> GgufFile::boolean(const std::string& key) const {
  return checked(*this, key, "a bool", [](const GgufValue& v) { return v.boolean(); });
}
std::optional<std::string> GgufFile::string(const std::string& key) const {
  return checked(*this, key, "a string", [](const GgufValue& v) -> std::optional<std::string> {
    const auto text = v.string();
    return text ? std::optional<std::string>(*text) : std::nullopt;
  });
}

}  // namespace caldera::detail
