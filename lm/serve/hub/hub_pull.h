// Gets models of Hugging Face's hub.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "lm/formats/hub_cache.h"

namespace caldera::serve {

struct PullOptions {
  HubName name;
  std::string revision = "main";
  std::filesystem::path out;  ///< a folder for the files themselves; empty: the cache that all programs share
  std::string endpoint;       ///< empty: HF_ENDPOINT, else https://huggingface.co
  std::string token;          ///< empty: HF_TOKEN, else the file that `hf auth login` writes
  /// Learns of a file's bytes as they come: how many are there, and of how many.
  std::function<void(const std::string& file, std::uint64_t bytes, std::uint64_t of)> progress;
  /// Learns of a file that is there, and right.
  std::function<void(const std::string& file, std::uint64_t bytes)> loaded;
};

struct PulledModel {
  std::filesystem::path path;  ///< a folder, or a GGUF file
  std::size_t files = 0;
  std::uint64_t bytes = 0;
};

/// Gets a model: configuration, tokenizer and safetensors, or the GGUF files of the quantisation that is
/// asked for (where a repository has GGUF files alone and none is asked for: q4_k_m, else q8_0, else the
/// first). What is there already is not loaded again, what was broken off goes on. Files are checked by size,
/// large ones by SHA-256. Throws FileError, ValueError for an endpoint that is none.
PulledModel pull_model(const PullOptions& options);

}  // namespace caldera::serve
