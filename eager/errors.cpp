#include "eager/errors.h"

#include <fmt/format.h>

namespace caldera::v1 {

ModelError ModelError::file_not_found(std::string_view path) {
  return {Kind::FileNotFound,
          fmt::format("model file not found: '{}'; check the path and that it may be read", path)};
}
ModelError ModelError::invalid_format(std::string_view path, std::string_view reason) {
  return {Kind::InvalidFormat, fmt::format("'{}' is not a valid model file: {}", path, reason)};
}
ModelError ModelError::incompatible_version(std::string_view found, std::string_view supported) {
  return {Kind::IncompatibleVersion,
          fmt::format("model version {} is not supported; convert the model to {}", found, supported)};
}
ModelError ModelError::invalid_config(std::string_view reason) {
  return {Kind::InvalidConfig, fmt::format("invalid model configuration: {}", reason)};
}
ModelError ModelError::shape_mismatch(std::string_view tensor, const Shape& expected, const Shape& actual) {
  return {Kind::ShapeMismatch,
          fmt::format("tensor '{}' has shape {}, the configuration asks for {}; weights and configuration "
                      "must belong together",
                      tensor, actual.to_string(), expected.to_string())};
}

TrainingError TrainingError::invalid_lora_config(std::string_view reason) {
  return {Kind::InvalidLoRAConfig, fmt::format("invalid LoRA configuration: {}", reason)};
}
TrainingError TrainingError::invalid_config(std::string_view reason) {
  return {Kind::InvalidConfig, fmt::format("invalid training configuration: {}", reason)};
}
TrainingError TrainingError::failed(std::string_view reason) {
  return {Kind::Failed, fmt::format("training failed: {}", reason)};
}
TrainingError TrainingError::gradient(std::string_view reason) {
  return {Kind::Gradient, fmt::format("gradient: {}", reason)};
}
TrainingError TrainingError::state(std::string_view reason) {
  return {Kind::State, fmt::format("training state: {}", reason)};
}

InferenceError InferenceError::invalid_config(std::string_view reason) {
  return {Kind::InvalidConfig, fmt::format("invalid generation configuration: {}", reason)};
}
InferenceError InferenceError::failed(std::string_view reason) {
  return {Kind::Failed, fmt::format("inference failed: {}", reason)};
}
InferenceError InferenceError::invalid_sampling(std::string_view reason) {
  return {Kind::InvalidSampling, fmt::format("invalid sampling settings: {}", reason)};
}
InferenceError InferenceError::cache_full(std::int64_t position, std::int64_t max_len) {
  InferenceError error(
      Kind::CacheFull,
      fmt::format(
          "the key-value cache is full at position {} of {}; clear it or give it a larger max_seq_len",
          position, max_len));
  error.cache_position_ = CachePosition{position, max_len};
  return error;
}
InferenceError InferenceError::sampling(std::string_view reason) {
  return {Kind::Sampling, fmt::format("sampling failed: {}", reason)};
}
InferenceError InferenceError::end_of_sequence(std::int64_t token_id) {
  return {Kind::EndOfSequence,
          fmt::format("the text ended with token {}; start a new one or set stop_on_eos to false", token_id)};
}

CheckpointError CheckpointError::save_failed(std::string_view path, std::string_view reason) {
  return {Kind::SaveFailed, fmt::format("cannot save checkpoint '{}': {}", path, reason)};
}
CheckpointError CheckpointError::load_failed(std::string_view path, std::string_view reason) {
  return {Kind::LoadFailed, fmt::format("cannot load checkpoint '{}': {}", path, reason)};
}
CheckpointError CheckpointError::invalid_format(std::string_view path, std::string_view reason) {
  return {Kind::InvalidFormat, fmt::format("'{}' is not a valid checkpoint: {}", path, reason)};
}

DeviceError DeviceError::unavailable(std::string_view device, std::string_view reason) {
  return {Kind::Unavailable, fmt::format("device {} is not available: {}; use Device::cpu() or "
                                         "Device::with_fallback()",
                                         device, reason)};
}
DeviceError DeviceError::initialization_failed(std::string_view device, std::string_view reason) {
  return {Kind::InitializationFailed, fmt::format("device {} could not be opened: {}; check its driver, or "
                                                  "use Device::cpu()",
                                                  device, reason)};
}
DeviceError DeviceError::allocation_failed(std::string_view device, std::uint64_t bytes) {
  return {
      Kind::AllocationFailed,
      fmt::format("device {} has no room for {} bytes; use smaller batches or free tensors", device, bytes)};
}
DeviceError DeviceError::operation_failed(std::string_view operation, std::string_view reason) {
  return {Kind::OperationFailed, fmt::format("operation '{}' failed on its device: {}", operation, reason)};
}

}  // namespace caldera::v1
