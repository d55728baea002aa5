#include "training/models/parameter_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <system_error>

namespace caldera::detail {
namespace {

constexpr std::size_t kMostLines = 4;

}  // namespace

void TensorProblems::missing(const std::string& name, const Shape& expected) {
  lines_.push_back(fmt::format("tensor {} {} is missing", name, expected.to_string()));
}

void TensorProblems::unexpected(const std::string& name) {
  lines_.push_back(fmt::format("tensor {} is unexpected", name));
}

void TensorProblems::check(const std::string& name, const Shape& expected, const TensorInfo& found) {
  if (found.shape != expected)
    lines_.push_back(fmt::format("tensor {} has shape {}, expected {}", name, found.shape.to_string(),
                                 expected.to_string()));
  else if (!is_floating(found.dtype))
    lines_.push_back(
        fmt::format("tensor {} is {}, expected a floating type", name, caldera::name(found.dtype)));
}

void TensorProblems::throw_if_any(const std::string& where) const {
  if (lines_.empty()) return;
  std::string message = where + ": ";
  for (std::size_t i = 0; i < std::min(kMostLines, lines_.size()); ++i)
    message += (i == 0 ? "" : "; ") + lines_[i];
  if (lines_.size() > kMostLines) message += fmt::format("; and {} more", lines_.size() - kMostLines);
  throw FileError(message);
}

bool is_lora_factor(const Parameter& parameter) {
  return parameter.name.ends_with(".lora_A.weight") || parameter.name.ends_with(".lora_B.weight");
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
