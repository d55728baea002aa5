#include "ops/core/type_info.h"

#include <fmt/core.h>

#include <cmath>

#include "ops/core/node_builder.h"

namespace caldera {
namespace {

int bits_of(DType dtype) { return 8 * static_cast<int>(size_of(dtype)); }

}  // namespace

DType result_type(std::initializer_list<DType> types) {
  if (types.size() == 0) throw ValueError("result_type: no types were given");
  DType out = *types.begin();
  for (const DType type : types) out = promote(out, type);
  return out;
}
DType result_type(const LazyTensor& a, const LazyTensor& b) {
  return promote(ops::dtype_beside(a, b), ops::dtype_beside(b, a));
}

bool can_cast(DType from, DType to) { return promote(from, to) == to; }
bool can_cast(const LazyTensor& from, DType to) { return can_cast(from.dtype(), to); }

bool isdtype(DType dtype, TypeKind kind) {
  switch (kind) {
    case TypeKind::boolean:
      return dtype == DType::boolean;
    case TypeKind::signed_integer:
      return is_integral(dtype) && !is_unsigned(dtype);
    case TypeKind::unsigned_integer:
      return is_unsigned(dtype);
    case TypeKind::integral:
      return is_integral(dtype);
    case TypeKind::real_floating:
      return is_floating(dtype);
    case TypeKind::numeric:
      return is_integral(dtype) || is_floating(dtype);
  }
  return false;
}

FloatInfo finfo(DType dtype) {
  if (!is_floating(dtype)) throw DTypeError(fmt::format("finfo: {} is not floating; see iinfo", name(dtype)));
  const int bits = bits_of(dtype), digits = facts(dtype).digits;
  const int highest = 1 << (bits - digits - 1);  // half of the exponents are negative
  const double eps = std::ldexp(1, 1 - digits);
  const double max = std::ldexp(2 - eps, highest - 1);
  return {dtype, bits, eps, max, -max, std::ldexp(1, 2 - highest)};
}

IntegerInfo iinfo(DType dtype) {
  if (!is_integral(dtype)) throw DTypeError(fmt::format("iinfo: {} is not integral; see finfo", name(dtype)));
  return {dtype, bits_of(dtype), facts(dtype).highest, facts(dtype).lowest};
}

}  // namespace caldera
