#include "lm/formats/hub_cache.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"

namespace caldera {
namespace {

bool is_word(std::string_view text) {
  const bool plain = std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.';
  });
  return plain && !text.empty() && text.size() <= 96 && text.front() != '.' && text.front() != '-' &&
         text.find("..") == std::string_view::npos;
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 32);
  return result;
}

std::filesystem::path from_environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// The files of a repository's main branch; none where they are not there.
std::optional<std::filesystem::path> snapshot_of(const std::filesystem::path& folder) {
  std::string commit;
  try {
    commit = read_text_file(folder / "refs" / "main", 4096);
  } catch (const Error&) {
    return std::nullopt;
  }
  while (!commit.empty() && (commit.back() == '\n' || commit.back() == ' ')) commit.pop_back();
  if (!is_word(commit)) return std::nullopt;
  return folder / "snapshots" / commit;
}

bool is_folder_model(const std::filesystem::path& snapshot) {
  std::error_code error;
  return std::filesystem::exists(snapshot / "config.json", error);
}

/// The first of parts is first.
std::vector<std::filesystem::path> ggufs_in(const std::filesystem::path& snapshot) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(snapshot, error))
    if (entry.path().extension() == ".gguf" && std::filesystem::exists(entry.path(), error))
      files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

/// The size of a file, or of the one that a link leads to; 0 of what is none.
std::uint64_t bytes_of(const std::filesystem::path& file) {
  std::error_code error;
  const bool is_file = std::filesystem::is_regular_file(file, error);
  const std::uintmax_t bytes = is_file ? std::filesystem::file_size(file, error) : 0;
  return error ? 0 : bytes;
}

}  // namespace

std::optional<HubName> parse_hub_name(std::string_view text) {
  HubName name;
  if (const std::size_t colon = text.find(':'); colon != std::string_view::npos) {
    name.quant = text.substr(colon + 1);
    text = text.substr(0, colon);
    if (!is_word(name.quant)) return std::nullopt;
  }
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  if (!is_word(text.substr(0, slash)) || !is_word(text.substr(slash + 1))) return std::nullopt;
  name.repository = text;
  return name;
}

std::filesystem::path hub_cache_folder() {
  if (std::filesystem::path cache = from_environment("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const auto home = from_environment("HF_HOME"); !home.empty()) return home / "hub";
  if (const auto cache = from_environment("XDG_CACHE_HOME"); !cache.empty())
    return cache / "huggingface" / "hub";
  return from_environment("HOME") / ".cache" / "huggingface" / "hub";
}

std::filesystem::path hub_folder(const std::filesystem::path& cache, const std::string& repository) {
  const std::size_t slash = repository.find('/');
  return cache / ("models--" + repository.substr(0, slash) + "--" + repository.substr(slash + 1));
}

bool is_of_quant(std::string_view file, std::string_view quant) {
  const std::string name = lower(file), part = lower(quant);
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  for (std::size_t at = 0; (at = name.find(part, at)) != std::string::npos; ++at) {
    const std::size_t end = at + part.size();
    if ((at == 0 || !is_letter(name[at - 1])) && (end == name.size() || !is_letter(name[end]))) return true;
  }
  return false;
}

std::optional<std::filesystem::path> find_in_hub_cache(std::string_view text) {
  const std::optional<HubName> name = parse_hub_name(text);
  if (!name) return std::nullopt;
  auto snapshot = snapshot_of(hub_folder(hub_cache_folder(), name->repository));
  if (!snapshot) return std::nullopt;
  if (name->quant.empty() && is_folder_model(*snapshot)) return snapshot;
  for (const std::filesystem::path& file : ggufs_in(*snapshot))
    if (name->quant.empty() || is_of_quant(file.filename().string(), name->quant)) return file;
  return std::nullopt;
}

std::vector<CachedModel> list_hub_cache() {
  constexpr std::string_view kPrefix = "models--";
  std::vector<CachedModel> models;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(hub_cache_folder(), error)) {
    const std::string folder = entry.path().filename().string();
    const std::size_t middle = folder.find("--", kPrefix.size());
    if (!folder.starts_with(kPrefix) || middle == std::string::npos) continue;
    const std::string name =
        folder.substr(kPrefix.size(), middle - kPrefix.size()) + "/" + folder.substr(middle + 2);
    const auto snapshot = snapshot_of(entry.path());
    if (!parse_hub_name(name) || !snapshot) continue;
    if (is_folder_model(*snapshot)) {
      models.push_back({name, *snapshot, 0});
      for (const auto& file : std::filesystem::recursive_directory_iterator(*snapshot, error))
        models.back().bytes += bytes_of(file.path());
      continue;
    }
    for (const std::filesystem::path& file : ggufs_in(*snapshot))
      models.push_back({name, file, bytes_of(file)});
  }
  std::ranges::sort(models, {}, [](const CachedModel& m) { return std::pair(m.name, m.path); });
  return models;
}

std::string model_path(const std::string& text) {
  std::error_code error;
  if (std::filesystem::exists(text, error)) return text;
  const auto found = find_in_hub_cache(text);
  return found ? found->string() : text;
}

}  // namespace caldera
