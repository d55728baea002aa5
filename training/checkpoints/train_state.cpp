#include "training/checkpoints/train_state.h"

#include <fmt/format.h>

#include <cmath>
#include <cstddef>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "engine/base/error.h"
#include "lm/base/atomic_file.h"
#include "lm/formats/safetensors/safetensors.h"

namespace caldera {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMetadataKey = "training_state";
constexpr int kVersion = 1;
constexpr std::string_view kParameter = "parameter.";
constexpr std::string_view kOptimizer = "optimizer.";
constexpr std::string_view kAverage = "average.";

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

/// A step whose gradients overflowed has no number for their norm, and JSON has none for infinity.
std::optional<double> finite(double value) {
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::optional<double> number_or_nothing(const Json& value) {
  return value.is_null() ? std::nullopt : std::optional(value.get<double>());
}

Json numbers_of(const TrainState& state) {
  Json numbers{{"version", kVersion},
               {"step", state.step},
               {"optimizer_step", state.optimizer.step},
               {"data",
                {{"seed", state.data.seed},
                 {"epoch", state.data.epoch},
                 {"index", state.data.index},
                 {"size", state.data.size},
                 {"row", state.data.row},
                 {"fingerprint", state.data_fingerprint}}},
               {"loss", state.loss},
               {"grad_norm", or_null(finite(state.grad_norm))},
               {"loss_scaler", nullptr},
               {"initial_val_loss", or_null(state.initial_val_loss)},
               {"val_loss", or_null(state.val_loss)},
               {"val_metrics", Json::object()},
               {"validated_step", state.validated_step},
               {"best", nullptr},
               {"misses", state.misses},
               {"tokens", state.tokens}};
  if (state.loss_scaler)
    numbers["loss_scaler"] = {{"scale", state.loss_scaler->scale},
                              {"good_steps", state.loss_scaler->good_steps}};
  for (const Metric& metric : state.val_metrics) numbers["val_metrics"][metric.name] = metric.value;
  if (state.best)
    numbers["best"] = {{"step", state.best->step}, {"loss", state.best->loss}, {"score", state.best->score}};
  return numbers;
}

TrainState from_numbers(const Json& numbers) {
  const Json& data = numbers.at("data");
  TrainState state;
  state.step = numbers.at("step");
  state.optimizer.step = numbers.at("optimizer_step");
  state.data = {.seed = data.at("seed"),
                .epoch = data.at("epoch"),
                .index = data.at("index"),
                .size = data.at("size"),
                .row = data.value("row", std::uint64_t{0})};
  state.data_fingerprint = data.at("fingerprint");
  state.loss = numbers.at("loss");
  state.grad_norm =
      number_or_nothing(numbers.at("grad_norm")).value_or(std::numeric_limits<double>::infinity());
  if (const Json& scaler = numbers.at("loss_scaler"); !scaler.is_null())
    state.loss_scaler = LossScaler::State{.scale = scaler.at("scale"), .good_steps = scaler.at("good_steps")};
  state.initial_val_loss = number_or_nothing(numbers.at("initial_val_loss"));
  state.val_loss = number_or_nothing(numbers.at("val_loss"));
  for (const auto& [name, value] : numbers.at("val_metrics").items())
    state.val_metrics.push_back({name, value});
  state.validated_step = numbers.at("validated_step");
  if (const Json& best = numbers.at("best"); !best.is_null())
    state.best = BestValidation{.step = best.at("step"),
                                .loss = best.at("loss"),
                                .score = best.contains("score") ? best.at("score") : best.at("loss")};
  state.misses = numbers.at("misses");
  state.tokens = numbers.at("tokens");
  return state;
}

FileError refusal(const std::filesystem::path& path, const std::string& what) {
  return FileError(fmt::format("{}: {}", path.string(), what));
}

TrainState numbers_in(const SafetensorsFile& file) {
  const auto found = file.metadata().find(kMetadataKey);
  if (found == file.metadata().end()) throw refusal(file.path(), "this is not the state of a training run");
  try {
    const Json numbers = Json::parse(found->second);
    if (numbers.at("version") != kVersion)
      throw refusal(file.path(), "another version of Caldera wrote it; go on with that version");
    return from_numbers(numbers);
  } catch (const Json::exception&) {
    throw refusal(file.path(), "its numbers are damaged");
  }
}

}  // namespace

void write_train_state(StagedFiles& files, const std::filesystem::path& path, const TrainState& state) {
  std::vector<TensorToMake> tensors;
  const auto add = [&](std::string_view prefix, const std::map<std::string, LazyTensor>& named) {
    for (const auto& [name, tensor] : named)
      tensors.push_back({.name = std::string(prefix) + name,
                         .dtype = tensor.dtype(),
                         .shape = tensor.shape(),
                         .make = [&tensor = tensor] {
                           const auto size =
                               static_cast<std::size_t>(tensor.numel()) * size_of(tensor.dtype());
                           std::vector<std::byte> bytes(size);
                           tensor.copy_to_host(bytes.data());
                           return bytes;
                         }});
  };
  add(kParameter, state.parameters);
  add(kOptimizer, state.optimizer.tensors);
  add(kAverage, state.averages);
  write_safetensors(files, path, tensors, {{kMetadataKey, numbers_of(state).dump()}});
}

TrainState read_train_state(const std::filesystem::path& path, Device device) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  TrainState state = numbers_in(file);
  for (const std::string& name : file.names()) {
    const std::size_t prefix = name.find('.') + 1;
    auto* const into = name.starts_with(kParameter)   ? &state.parameters
                       : name.starts_with(kOptimizer) ? &state.optimizer.tensors
                       : name.starts_with(kAverage)   ? &state.averages
                                                      : nullptr;
    if (into == nullptr) throw refusal(path, fmt::format("tensor '{}' is none of a training state", name));
    const TensorInfo& info = file.info(name);
    const std::span<const std::byte> bytes = file.bytes(name);
    (*into)[name.substr(prefix)] =
        LazyTensor::from_bytes(bytes.data(), bytes.size(), info.dtype, info.shape, device);
  }
  return state;
}

TrainState read_train_numbers(const std::filesystem::path& path) {
  return numbers_in(SafetensorsFile::open(path));
}

}  // namespace caldera
