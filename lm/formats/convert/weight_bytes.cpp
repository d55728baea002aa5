#include "lm/formats/convert/weight_bytes.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <span>

#include "engine/base/error.h"

namespace caldera::detail {
namespace {

template <class To, class Round>
std::vector<std::byte> rounded(const std::vector<float>& values, const std::string& weight,
                               const Round& round) {
  std::vector<std::byte> bytes(values.size() * sizeof(To));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const To value = round(values[i]);
    if (std::isfinite(values[i]) && !std::isfinite(to_float(value)))
      throw ValueError(fmt::format("weight {} holds {}, which is too large for {}; use a wider type", weight,
                                   values[i], name(dtype_of<To>())));
    std::memcpy(bytes.data() + i * sizeof(To), &value, sizeof(To));
  }
  return bytes;
}

}  // namespace

std::vector<std::byte> float_bytes(const std::vector<float>& values, DType dtype, const std::string& weight) {
  if (dtype == DType::f16) return rounded<Half>(values, weight, [](float v) { return to_half(v); });
  if (dtype == DType::bf16) return rounded<BFloat16>(values, weight, [](float v) { return to_bfloat16(v); });
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

std::vector<float> transposed(const std::vector<float>& values, std::int64_t rows, std::int64_t columns) {
  std::vector<float> out(values.size());
  const auto at = [](std::int64_t row, std::int64_t width, std::int64_t column) {
    return static_cast<std::size_t>(row * width + column);
  };
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = 0; c < columns; ++c) out[at(c, rows, r)] = values[at(r, columns, c)];
  return out;
}

}  // namespace caldera::detail
