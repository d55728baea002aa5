#include "training/loop/train_step.h"

#include <fmt/format.h>

#include "engine/base/error.h"
#include "lm/formats/safetensors/safetensors.h"

namespace caldera::detail {

void save_parameters(const std::filesystem::path& path, const std::vector<StoredParameter>& parameters) {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorToWrite> tensors;
  bytes.reserve(parameters.size());
  for (const StoredParameter& p : parameters) {
    const LazyTensor& x = *p.tensor;
    bytes.emplace_back(static_cast<std::size_t>(x.numel()) * size_of(x.dtype()));
    x.copy_to_host(bytes.back().data());
    tensors.push_back({p.name, x.dtype(), x.shape(), bytes.back()});
  }
  write_safetensors(path, tensors);
}

void load_parameters(const std::filesystem::path& path, const std::vector<StoredParameter>& parameters) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  std::vector<LazyTensor> read;
  for (const StoredParameter& p : parameters) {
    const LazyTensor& now = *p.tensor;
    if (!file.contains(p.name))
      throw FileError(fmt::format("{}: there is no '{}' in it", path.string(), p.name));
    const TensorInfo& info = file.info(p.name);
    if (info.foreign != ForeignType::none || info.dtype != now.dtype() || info.shape != now.shape())
      throw FileError(fmt::format("{}: '{}' is {} of {}; the module has {} of {}", path.string(), p.name,
                                  info.shape.to_string(), type_name(info), now.shape().to_string(),
                                  name(now.dtype())));
    const auto bytes = file.bytes(p.name);
    read.push_back(LazyTensor::from_bytes(bytes.data(), bytes.size(), info.dtype, info.shape, now.device()));
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) *parameters[i].tensor = read[i];
}

}  // namespace caldera::detail
