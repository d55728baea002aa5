#include "training/vision/models/image_weights.h"

#include <fmt/format.h>

#include <set>

#include "engine/base/error.h"
#include "lm/formats/safetensors/safetensors.h"
#include "ops/core/cast.h"

namespace caldera::vision {
namespace {

bool is_passed_over(const std::string& name) {
  return name.ends_with("num_batches_tracked") || name.starts_with("aux1.") || name.starts_with("aux2.");
}

}  // namespace

void load_image_weights(Module& model, const std::filesystem::path& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  const std::vector<Parameter> parameters = model.parameters();
  std::vector<LazyTensor> read;
  std::set<std::string> known;
  for (const Parameter& p : parameters) {
    const LazyTensor& now = *p.tensor;
    known.insert(p.name);
    if (!file.contains(p.name))
      throw FileError(fmt::format("{}: there is no '{}', which the network has", path.string(), p.name));
    const TensorInfo& info = file.info(p.name);
    if (info.shape != now.shape())
      throw FileError(fmt::format("{}: '{}' is {}, and the network's {}", path.string(), p.name,
                                  info.shape.to_string(), now.shape().to_string()));
    if (info.foreign == ForeignType::none && info.dtype == DType::f64) {
      const auto bytes = file.bytes(p.name);
      read.push_back(
          astype(LazyTensor::from_bytes(bytes.data(), bytes.size(), DType::f64, info.shape, now.device()),
                 now.dtype()));
    } else {
      read.push_back(
          astype(LazyTensor::from_vector(file.read_f32(p.name), info.shape, now.device()), now.dtype()));
    }
  }
  for (const std::string& name : file.names()) {
    if (!known.contains(name) && !is_passed_over(name))
      throw FileError(fmt::format("{}: the network has no '{}'", path.string(), name));
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) *parameters[i].tensor = read[i].eval().detach();
}

void save_image_weights(Module& model, const std::filesystem::path& path) {
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorToWrite> tensors;
  for (const Parameter& p : model.parameters()) {
    bytes.emplace_back(static_cast<std::size_t>(p.tensor->numel()) * size_of(p.tensor->dtype()));
    p.tensor->copy_to_host(bytes.back().data());
    tensors.push_back({p.name, p.tensor->dtype(), p.tensor->shape(), bytes.back()});
  }
  write_safetensors(path, tensors);
}

}  // namespace caldera::vision
