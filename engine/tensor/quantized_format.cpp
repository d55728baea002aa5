#include "engine/tensor/quantized_format.h"

#include <limits>

namespace caldera {
namespace {

/// Rows and columns of a group at most: what devices count in 32 bits.
constexpr std::int64_t kLargestGroup = std::numeric_limits<std::int32_t>::max();

}  // namespace

std::optional<QuantizedFormat> quantized_format_of_ggml(std::int64_t type) {
  for (std::size_t i = 0; i < kQuantizedFacts.size(); ++i) {
    if (kQuantizedFacts[i].ggml_type >= 0 && kQuantizedFacts[i].ggml_type == type)
      return static_cast<QuantizedFormat>(i);
  }
  return std::nullopt;
}

std::string_view why_no_layout(const QuantizedLayout& layout, std::int64_t rows, std::int64_t columns) {
  const QuantizedFacts& f = facts(layout.format);
  if (rows < 0 || columns < 0) return "a negative extent";
  if (is_plain(layout.format))
    return layout.group == 0 && layout.group_rows == 1 ? "" : "plain floats have no groups";
  if (is_block_format(layout.format)) {
    if (layout.group != 0 || layout.group_rows != 1) return "a block format has no groups";
    return columns % f.block == 0 ? "" : "columns are no multiple of the block";
  }
  if (layout.group <= 0 || layout.group_rows <= 0) return "a group has to have rows and columns";
  if (layout.group > kLargestGroup || layout.group_rows > kLargestGroup)
    return "a group has at most 2^31 - 1 rows and columns";
  if (layout.format == QuantizedFormat::fp8_e4m3) return "";
  if (layout.group_rows != 1) return "only fp8_e4m3 has groups of several rows";
  if (layout.group % 32 != 0) return "a group has to be a multiple of 32 columns";
  return columns % layout.group == 0 ? "" : "columns are no multiple of the group";
}

std::vector<QuantizedPart> parts_of(const QuantizedLayout& layout, std::int64_t rows, std::int64_t columns) {
  const QuantizedFacts& f = facts(layout.format);
  if (is_block_format(layout.format))
    return {{"blocks", DType::u8, false, rows, columns / f.block * f.block_bytes}};
  if (is_plain(layout.format)) {
    const DType type = layout.format == QuantizedFormat::f32   ? DType::f32
                       : layout.format == QuantizedFormat::f16 ? DType::f16
                                                               : DType::bf16;
    return {{"weights", type, false, rows, columns}};
  }
  const std::int64_t groups = groups_of(layout, columns);
  if (is_affine(layout.format)) {
    return {{"codes", DType::u32, false, rows, columns * f.bits / 32},
            {"scales", DType::f32, true, rows, groups},
            {"biases", DType::f32, true, rows, groups}};
  }
  if (layout.format == QuantizedFormat::codebook4) {
    return {{"codes", DType::u8, false, rows, columns / 2},
            {"scales", DType::f32, false, rows, groups},
            {"table", DType::f32, false, 1, 16}};
  }
  const std::int64_t tiles = (rows + layout.group_rows - 1) / layout.group_rows;
  return {{"codes", DType::u8, false, rows, columns}, {"scales", DType::f32, true, tiles, groups}};
}

}  // namespace caldera
