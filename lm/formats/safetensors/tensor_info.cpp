#include "lm/formats/safetensors/tensor_info.h"

#include <array>

namespace caldera {
namespace {

// In the order of DType.
constexpr std::array<std::string_view, kDTypeCount> kNames{"BOOL", "U8",  "U32",  "I8",  "I16", "I32",
                                                           "I64",  "F16", "BF16", "F32", "F64"};

struct Foreign {
  std::string_view name;
  ForeignType type;
  DType same_size;
};
constexpr std::array<Foreign, 5> kForeign{{{"F8_E4M3", ForeignType::f8_e4m3, DType::u8},
                                           {"F8_E5M2", ForeignType::f8_e5m2, DType::u8},
                                           {"F8_E8M0", ForeignType::f8_e8m0, DType::u8},
                                           {"U16", ForeignType::u16, DType::i16},
                                           {"U64", ForeignType::u64, DType::i64}}};

}  // namespace

std::string_view type_name(const TensorInfo& info) {
  for (const Foreign& foreign : kForeign)
    if (foreign.type == info.foreign) return foreign.name;
  return kNames[static_cast<std::size_t>(info.dtype)];
}

bool detail::set_type(TensorInfo& info, std::string_view name) {
  for (const DType dtype : kAllDTypes) {
    if (kNames[static_cast<std::size_t>(dtype)] != name) continue;
    info.dtype = dtype;
    return true;
  }
  for (const Foreign& foreign : kForeign) {
    if (foreign.name != name) continue;
    info.dtype = foreign.same_size;
    info.foreign = foreign.type;
    return true;
  }
  return false;
}

}  // namespace caldera
