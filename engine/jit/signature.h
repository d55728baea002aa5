// Signature: what calls have in common that share a trace. Internal to compiled functions.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/hash.h"
#include "engine/graph/lazy_tensor.h"

namespace caldera {

class Signature {
 public:
  explicit Signature(std::span<const LazyTensor> arguments);
  /// Whether a call with these arguments, now, has this signature. Some nanoseconds an argument.
  bool matches(std::span<const LazyTensor> arguments) const;
  /// Hashes the signature that a call with these arguments has now.
  static Hash128 hash(std::span<const LazyTensor> arguments);

 private:
  struct Argument {
    Shape shape;
    DType dtype;
    Device device;
    bool is_number;
    bool is_weak;  // of a number: it takes the type of what it meets
  };
  static Argument argument_of(const Node& node);

  std::vector<Argument> arguments_;
  bool fusion_;
  Device default_device_;
};

}  // namespace caldera
