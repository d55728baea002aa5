// HubCache: where models of Hugging Face's hub are on this machine.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace caldera {

/// A repository of the hub, "ORG/NAME", and one of its files where it has several quantised ones:
/// "ORG/NAME:Q4_K_M".
struct HubName {
  std::string repository;
  std::string quant;
};
/// Reads such a name; none where the text is none.
std::optional<HubName> parse_hub_name(std::string_view text);

/// The folder of huggingface_hub: HF_HUB_CACHE, else HF_HOME/hub, else ~/.cache/huggingface/hub.
std::filesystem::path hub_cache_folder();
/// A repository's folder in that: "models--ORG--NAME".
std::filesystem::path hub_folder(const std::filesystem::path& cache, const std::string& repository);

/// Whether a file's name says that it is quantised so, as names of GGUF files do. Ignores case.
bool is_of_quant(std::string_view file, std::string_view quant);

/// Finds a model of the hub that is on this machine: a folder, or a GGUF file where the repository has such
/// files alone, or the name asks for one. None where the text is no such name, or the model is not there.
std::optional<std::filesystem::path> find_in_hub_cache(std::string_view name);

/// A model of the hub that is on this machine.
struct CachedModel {
  std::string name;            ///< "ORG/NAME"
  std::filesystem::path path;  ///< its folder, or one of its GGUF files
  std::uint64_t bytes = 0;     ///< of the folder's files together, or of that file
};
/// Lists the models of the cache that commands can open, by name: folders, and each GGUF file of those that
/// have such files alone.
std::vector<CachedModel> list_hub_cache();

/// A path as it is, if it is there; else, of a model's name, where it is in the cache, if it is.
std::string model_path(const std::string& text);

}  // namespace caldera
