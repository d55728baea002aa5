// The eager API's errors: one class an area, a kind each, messages with the values involved and what to do.
//
// All derive from caldera::Error. Errors of the engine itself (ShapeError for operands that do not fit,
// DTypeError …) pass through the eager API as they are.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/error.h"
#include "engine/tensor/shape.h"

namespace caldera::v1 {

using caldera::Error;

/// A model or its files are not what they should be.
class ModelError : public Error {
 public:
  enum class Kind : std::uint8_t {
    FileNotFound,
    InvalidFormat,
    IncompatibleVersion,
    InvalidConfig,
    ShapeMismatch
  };
  Kind kind() const { return kind_; }

  static ModelError file_not_found(std::string_view path);
  static ModelError invalid_format(std::string_view path, std::string_view reason);
  static ModelError incompatible_version(std::string_view found, std::string_view supported);
  static ModelError invalid_config(std::string_view reason);
  static ModelError shape_mismatch(std::string_view tensor, const Shape& expected, const Shape& actual);

 private:
  ModelError(Kind kind, const std::string& message) : Error(message), kind_(kind) {}
  Kind kind_;
};

/// Something about a training run: its settings, its state, its numbers.
class TrainingError : public Error {
 public:
  enum class Kind : std::uint8_t { InvalidLoRAConfig, InvalidConfig, Failed, Gradient, State };
  Kind kind() const { return kind_; }

  static TrainingError invalid_lora_config(std::string_view reason);
  static TrainingError invalid_config(std::string_view reason);
  static TrainingError failed(std::string_view reason);
  static TrainingError gradient(std::string_view reason);
  static TrainingError state(std::string_view reason);

 private:
  TrainingError(Kind kind, const std::string& message) : Error(message), kind_(kind) {}
  Kind kind_;
};

/// Something about text generation.
class InferenceError : public Error {
 public:
  enum class Kind : std::uint8_t {
    InvalidConfig,
    Failed,
    InvalidSampling,
    CacheFull,
    Sampling,
    EndOfSequence
  };
  struct CachePosition {
    std::int64_t position = 0;
    std::int64_t max_len = 0;
  };
  Kind kind() const { return kind_; }
  /// Returns where the cache was, for CacheFull.
  const std::optional<CachePosition>& cache_position() const { return cache_position_; }

  static InferenceError invalid_config(std::string_view reason);
  static InferenceError failed(std::string_view reason);
  static InferenceError invalid_sampling(std::string_view reason);
  static InferenceError cache_full(std::int64_t position, std::int64_t max_len);
  static InferenceError sampling(std::string_view reason);
  static InferenceError end_of_sequence(std::int64_t token_id);

 private:
  InferenceError(Kind kind, const std::string& message) : Error(message), kind_(kind) {}
  Kind kind_;
  std::optional<CachePosition> cache_position_;
};

/// A checkpoint could not be written or read.
class CheckpointError : public Error {
 public:
  enum class Kind : std::uint8_t { SaveFailed, LoadFailed, InvalidFormat };
  Kind kind() const { return kind_; }

  static CheckpointError save_failed(std::string_view path, std::string_view reason);
  static CheckpointError load_failed(std::string_view path, std::string_view reason);
  static CheckpointError invalid_format(std::string_view path, std::string_view reason);

 private:
  CheckpointError(Kind kind, const std::string& message) : Error(message), kind_(kind) {}
  Kind kind_;
};

/// A device is missing or fails. Also a caldera::DeviceError, so that one handler serves both APIs.
class DeviceError : public caldera::DeviceError {
 public:
  enum class Kind : std::uint8_t { Unavailable, InitializationFailed, AllocationFailed, OperationFailed };
  Kind kind() const { return kind_; }

  static DeviceError unavailable(std::string_view device, std::string_view reason);
  static DeviceError initialization_failed(std::string_view device, std::string_view reason);
  static DeviceError allocation_failed(std::string_view device, std::uint64_t bytes);
  static DeviceError operation_failed(std::string_view operation, std::string_view reason);

 private:
  DeviceError(Kind kind, const std::string& message) : caldera::DeviceError(message), kind_(kind) {}
  Kind kind_;
};

}  // namespace caldera::v1
