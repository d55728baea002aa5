// TensorInfo: what a file says about one of its tensors.
#pragma once

#include <cstdint>
#include <string_view>

#include "engine/tensor/dtype.h"
#include "engine/tensor/shape.h"

namespace caldera {

/// Types of elements that files hold and tensors of the engine do not.
enum class ForeignType : std::uint8_t { none, f8_e4m3, f8_e5m2, f8_e8m0, u16, u64 };

/// Describes one tensor of a file.
struct TensorInfo {
  DType dtype = DType::f32;
  Shape shape;
  /// If it is not `none`, the elements are of that type, and `dtype` is only an integer type of its size.
  ForeignType foreign = ForeignType::none;
};

/// Returns how the format spells the type: "F32", "F8_E4M3".
std::string_view type_name(const TensorInfo& info);

namespace detail {

/// Sets the type that safetensors files call so. False for an unknown one.
bool set_type(TensorInfo& info, std::string_view name);

}  // namespace detail
}  // namespace caldera
