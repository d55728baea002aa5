#include "eager/checkpoint.h"

#include <fmt/format.h>

#include <charconv>
#include <chrono>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "eager/errors.h"
#include "lm/formats/safetensors/safetensors.h"

namespace caldera::v1 {
namespace {

constexpr const char* kFormat = "caldera-v1-checkpoint";
constexpr const char* kFirstMoment = "exp_avg.";
constexpr const char* kSecondMoment = "exp_avg_sq.";
constexpr const char* kStep = "step.";

std::vector<std::byte> bytes_of(const Tensor& tensor) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(tensor.numel()) * size_of(tensor.dtype()));
  tensor.lazy().copy_to_host(bytes.data());
  return bytes;
}

Tensor tensor_of(std::span<const std::byte> bytes, const Tensor& like) {
  return Tensor(
      LazyTensor::from_bytes(bytes.data(), bytes.size(), like.dtype(), like.shape(), like.device()));
}

/// Shortest text that reads back as the same number.
std::string text_of(double value) { return fmt::format("{}", value); }

class Metadata {
 public:
  Metadata(const SafetensorsFile& file, std::string path)
      : values_(file.metadata()), path_(std::move(path)) {}

  template <class Number>
  Number number(const std::string& name) const {
    const auto found = values_.find(name);
    Number value{};
    if (found == values_.end()) fail(name);
    const std::string& text = found->second;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) fail(name);
    return value;
  }
  bool is_checkpoint() const {
    const auto format = values_.find("format");
    return format != values_.end() && format->second == kFormat;
  }

 private:
  [[noreturn]] void fail(const std::string& name) const {
    throw CheckpointError::invalid_format(path_, fmt::format("its metadata have no number '{}'", name));
  }
  const std::map<std::string, std::string>& values_;
  std::string path_;
};

void check(const SafetensorsFile& file, const std::string& name, const Tensor& like,
           const std::string& path) {
  if (!file.contains(name))
    throw CheckpointError::load_failed(path, fmt::format("it has no tensor '{}'", name));
  const TensorInfo& info = file.info(name);
  if (info.shape != like.shape())
    throw CheckpointError::load_failed(path, fmt::format("'{}' is {} there, and {} here", name,
                                                         info.shape.to_string(), like.shape().to_string()));
  if (file.bytes(name).size() != static_cast<std::size_t>(like.numel()) * size_of(like.dtype()))
    throw CheckpointError::load_failed(
        path, fmt::format("'{}' is not {} there", name, caldera::name(like.dtype())));
}

}  // namespace

std::int64_t CheckpointMetadata::now() {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

void save_checkpoint(const std::filesystem::path& path, const std::map<std::string, Var>& variables,
                     const CheckpointMetadata& metadata, const AdamW* optimizer) {
  std::map<std::string, std::string> facts{{"format", kFormat},
                                           {"global_step", std::to_string(metadata.global_step)},
                                           {"loss", text_of(metadata.loss)},
                                           {"learning_rate", text_of(metadata.learning_rate)},
                                           {"timestamp", std::to_string(metadata.timestamp)}};
  std::vector<std::pair<std::string, Tensor>> tensors;
  for (const auto& [name, variable] : variables) {
    tensors.emplace_back(name, variable.tensor());
    if (optimizer == nullptr) continue;
    const auto moments = optimizer->moments(variable);
    if (!moments) continue;  // not updated yet
    tensors.emplace_back(kFirstMoment + name, moments->m);
    tensors.emplace_back(kSecondMoment + name, moments->v);
    facts[kStep + name] = std::to_string(moments->step);
  }
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorToWrite> list;
  bytes.reserve(tensors.size());
  for (const auto& [name, tensor] : tensors) {
    bytes.push_back(bytes_of(tensor));
    list.push_back({name, tensor.dtype(), tensor.shape(), bytes.back()});
  }
  try {
    write_safetensors(path, list, facts);
  } catch (const Error& error) {
    throw CheckpointError::save_failed(path.string(), error.what());
  }
}

CheckpointMetadata load_checkpoint(const std::filesystem::path& path,
                                   const std::map<std::string, Var>& variables, AdamW* optimizer) {
  std::optional<SafetensorsFile> opened;
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored))
    throw CheckpointError::load_failed(path.string(), "there is no such file");
  try {
    opened.emplace(SafetensorsFile::open(path));
  } catch (const FileError& error) {
    throw CheckpointError::invalid_format(path.string(), error.what());
  }
  const SafetensorsFile& file = *opened;
  const Metadata metadata(file, path.string());
  if (!metadata.is_checkpoint())
    throw CheckpointError::invalid_format(path.string(), "it is no checkpoint of save_checkpoint()");
  const CheckpointMetadata result{.global_step = metadata.number<std::int64_t>("global_step"),
                                  .loss = metadata.number<double>("loss"),
                                  .learning_rate = metadata.number<double>("learning_rate"),
                                  .timestamp = metadata.number<std::int64_t>("timestamp")};

  // All is read before anything is set.
  std::vector<std::pair<Var, Tensor>> values;
  std::vector<std::pair<Var, AdamW::Moments>> moments;
  std::size_t expected = 0;
  for (const auto& [name, variable] : variables) {
    const Tensor& like = variable.tensor();
    check(file, name, like, path.string());
    values.emplace_back(variable, tensor_of(file.bytes(name), like));
    ++expected;
    const std::string first = kFirstMoment + name, second = kSecondMoment + name;
    if (!file.contains(first)) continue;
    expected += 2;
    if (optimizer == nullptr) continue;
    const Tensor zeros = AdamW::zero_moment(like);
    check(file, first, zeros, path.string());
    check(file, second, zeros, path.string());
    moments.emplace_back(variable, AdamW::Moments{.m = tensor_of(file.bytes(first), zeros),
                                                  .v = tensor_of(file.bytes(second), zeros),
                                                  .step = metadata.number<std::int64_t>(kStep + name)});
  }
  if (file.names().size() != expected)
    throw CheckpointError::load_failed(path.string(),
                                       fmt::format("it holds {} tensors, where {} belong to these variables",
                                                   file.names().size(), expected));
  for (const auto& [variable, value] : values) variable.set(value);
  if (optimizer != nullptr) {
    optimizer->reset_state();
    for (const auto& [variable, state] : moments) optimizer->restore(variable, state);
    optimizer->set_lr(result.learning_rate);
  }
  return result;
}

}  // namespace caldera::v1
