#include "lm/models/parameter_files.h"

#include <fmt/format.h>

#include <cstddef>
#include <system_error>

#include "lm/formats/safetensors/safetensors.h"

namespace caldera::detail {

bool is_lora_factor(const Parameter& parameter) {
  return parameter.name.ends_with(".lora_A.weight") || parameter.name.ends_with(".lora_B.weight") ||
         parameter.name.ends_with(".lora_magnitude_vector");
}

void write_parameters(StagedFiles& files, const std::filesystem::path& path,
                      const std::vector<Parameter>& parameters, const std::string& prefix) {
  std::vector<LazyTensor> tensors;
  tensors.reserve(parameters.size());
  for (const Parameter& p : parameters) tensors.push_back(*p.tensor);
  eval(tensors);
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorToWrite> list;
  bytes.reserve(parameters.size());
  for (const Parameter& p : parameters) {
    const LazyTensor& t = *p.tensor;
    auto& host = bytes.emplace_back(static_cast<std::size_t>(t.numel()) * size_of(t.dtype()));
    t.copy_to_host(host.data());
    list.push_back({prefix + p.name, t.dtype(), t.shape(), host});
  }
  // "format: pt" is what transformers and PEFT look for before they load a file.
  write_safetensors(files, path, list, {{"format", "pt"}});
}

void create_folder(const std::filesystem::path& dir) {
  std::error_code error;
  std::filesystem::create_directories(dir, error);
  if (error) throw FileError(fmt::format("{}: cannot create the folder: {}", dir.string(), error.message()));
}

}  // namespace caldera::detail
