#include "lm/serve/hub/hub_pull.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/serve/hub/hub_client.h"

namespace caldera::serve {
namespace {

bool ends_with_any(const std::string& name, std::initializer_list<std::string_view> ends) {
  return std::ranges::any_of(ends, [&](std::string_view end) { return name.ends_with(end); });
}

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string token_of(const PullOptions& options) {
  if (!options.token.empty()) return options.token;
  if (std::string token = environment("HF_TOKEN"); !token.empty()) return token;
  const std::filesystem::path file = hub_cache_folder().parent_path() / "token";
  std::error_code error;
  if (!std::filesystem::exists(file, error)) return {};
  std::string token = read_text_file(file, 4096);
  while (!token.empty() && static_cast<unsigned char>(token.back()) <= ' ') token.pop_back();
  return token;
}

std::vector<HubFile> files_of(const HubRevision& revision, const HubName& name) {
  std::vector<HubFile> ggufs, others;
  bool has_weights = false;
  for (const HubFile& file : revision.files) {
    if (file.name.ends_with(".gguf")) ggufs.push_back(file);
    has_weights = has_weights || file.name.ends_with(".safetensors");
    if (ends_with_any(file.name, {".safetensors", ".json", ".model", ".txt", ".jinja", ".tiktoken"}))
      others.push_back(file);
  }
  if (name.quant.empty() && has_weights) return others;
  if (ggufs.empty())
    throw FileError(fmt::format("{}: it has neither safetensors nor GGUF files{}", name.repository,
                                name.quant.empty() ? "" : "; leave out the quantisation"));
  const auto of = [&](std::string_view quant) {
    std::vector<HubFile> found;
    for (const HubFile& file : ggufs)
      if (is_of_quant(file.name, quant)) found.push_back(file);
    return found;
  };
  if (!name.quant.empty()) {
    std::vector<HubFile> found = of(name.quant);
    if (!found.empty()) return found;
    std::vector<std::string> names;
    names.reserve(ggufs.size());
    for (const HubFile& file : ggufs) names.push_back(file.name);
    throw FileError(fmt::format("{}: no file is of {}; there are {}", name.repository, name.quant,
                                fmt::join(names, ", ")));
  }
  for (const char* usual : {"q4_k_m", "q8_0"})
    if (std::vector<HubFile> found = of(usual); !found.empty()) return found;
  return {ggufs.front()};
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw FileError(fmt::format("{}: {}", folder.string(), error.message()));
}

}  // namespace

PulledModel pull_model(const PullOptions& options) {
  std::string endpoint = options.endpoint.empty() ? environment("HF_ENDPOINT") : options.endpoint;
  if (endpoint.empty()) endpoint = "https://huggingface.co";
  HubClient client(endpoint, token_of(options));
  const HubRevision revision = client.list(options.name.repository, options.revision);
  const std::vector<HubFile> files = files_of(revision, options.name);
  const bool cached = options.out.empty();
  const std::filesystem::path home = hub_folder(hub_cache_folder(), options.name.repository);
  const std::filesystem::path folder = cached ? home / "snapshots" / revision.commit : options.out;
  make_folder(folder);
  if (cached) make_folder(home / "blobs");
  PulledModel pulled;
  for (const HubFile& file : files) {
    const std::filesystem::path place = folder / file.name;
    // Contents have names of their own in the cache: revisions share them.
    const std::filesystem::path content = cached ? home / "blobs" / file.blob : place;
    std::error_code error;
    const bool there = std::filesystem::exists(content, error) &&
                       (!file.bytes || std::filesystem::file_size(content, error) == *file.bytes);
    if (!there)
      client.load(options.name.repository, revision, file, content, [&](std::uint64_t bytes) {
        if (options.progress) options.progress(file.name, bytes, file.bytes.value_or(0));
      });
    const std::uint64_t size = std::filesystem::file_size(content, error);
    if (options.loaded) options.loaded(file.name, size);
    if (cached && !std::filesystem::exists(place, error)) {
      std::filesystem::remove(place, error);  // a link to what is no longer there
      std::filesystem::create_symlink(std::filesystem::path("..") / ".." / "blobs" / file.blob, place, error);
      if (error) std::filesystem::create_hard_link(content, place, error);
      if (error) throw FileError(fmt::format("{}: {}", place.string(), error.message()));
    }
    ++pulled.files;
    pulled.bytes += size;
  }
  if (cached) {
    make_folder(home / "refs");
    write_text_file(home / "refs" / options.revision, revision.commit);
  }
  const bool is_gguf = files.front().name.ends_with(".gguf");
  std::string first = files.front().name;
  for (const HubFile& file : files) first = std::min(first, file.name);  // of parts
  pulled.path = is_gguf ? folder / first : folder;
  return pulled;
}

}  // namespace caldera::serve
