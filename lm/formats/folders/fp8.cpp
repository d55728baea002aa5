// FP8 weights with scales: NAME.weight of E4M3 (or E5M2) and NAME.weight_scale_inv, a factor for each tile
// (DeepSeek's 128 x 128), or NAME.weight_scale, one for the tensor or for each row (compressed-tensors,
// fbgemm, ModelOpt). By whichever name, a weight is its code times the factor.
#include <fmt/format.h>

#include <algorithm>

#include "engine/base/error.h"
#include "lm/formats/folders/schemes.h"
#include "lm/formats/weights/computed_weight.h"
#include "lm/formats/weights/float8.h"
#include "lm/formats/weights/packed_weight.h"
#include "lm/formats/weights/plain_weight.h"

namespace caldera::detail {
namespace {

/// Rows and columns that share a factor.
struct Tile {
  std::int64_t rows = 0, columns = 0;
};

Tile tile_of(const StoredTensor& scales, const Shape& weight, const std::optional<Tile>& blocks) {
  const Shape& s = scales.info.shape;
  const std::int64_t rows = weight[0];
  const std::int64_t columns = weight[1];
  if (s.numel() == 1) return {rows, columns};
  if (s == Shape{rows, 1} || s == Shape{rows}) return {1, columns};
  if (blocks && s == Shape{(rows - 1) / blocks->rows + 1, (columns - 1) / blocks->columns + 1})
    return *blocks;
  FolderReader::fail(scales,
                     fmt::format("of shape {} does not fit a weight {}", s.to_string(), weight.to_string()));
}

void read_fp8_weight(FolderReader& reader, const std::string& module, const std::string& scale_name,
                     const std::optional<Tile>& blocks) {
  const std::string name = module + ".weight";
  const StoredTensor codes = reader.take(name);
  const Shape& shape = codes.info.shape;
  if (!is_float8(codes.info.foreign) || shape.rank() != 2)
    FolderReader::fail(codes, fmt::format("is {} {}, expected a matrix of F8_E4M3 or F8_E5M2",
                                          type_name(codes.info), shape.to_string()));
  const StoredTensor scales = reader.take(scale_name);
  if (!is_floating(scales.info.dtype) || scales.info.dtype == DType::f64)
    FolderReader::fail(scales, fmt::format("is {}, expected floats", type_name(scales.info)));
  const Tile tile = tile_of(scales, shape, blocks);
  if (codes.info.foreign == ForeignType::f8_e4m3) {
    return add_checked(reader, name, [&] {
      std::vector<PackedPart> parts;
      parts.push_back({DType::u8, ByteParts(codes.bytes), {}});
      parts.push_back({scales.info.dtype, ByteParts(scales.bytes), {}});
      return std::make_unique<PackedWeight>(
          shape, QuantizedLayout{QuantizedFormat::fp8_e4m3, tile.columns, tile.rows}, std::move(parts));
    });
  }
  reader.add(name, std::make_unique<ComputedWeight>(shape, std::string(type_name(codes.info)), [=] {
               std::vector<float> values = float8_values(codes.bytes, codes.info.foreign);
               const std::vector<float> s = to_floats(scales.bytes, scales.info.dtype);
               const std::int64_t across = (codes.info.shape[1] - 1) / tile.columns + 1;
               std::size_t i = 0;
               for (std::int64_t r = 0; r < codes.info.shape[0]; ++r)
                 for (std::int64_t c = 0; c < codes.info.shape[1]; ++c)
                   values[i++] *= s[static_cast<std::size_t>(r / tile.rows * across + c / tile.columns)];
               return values;
             }));
}

}  // namespace

void read_fp8(FolderReader& reader, const JsonFields& options) {
  std::optional<Tile> blocks;
  if (const std::vector<std::int64_t> size = options.integers("weight_block_size"); !size.empty()) {
    if (size.size() != 2 || size[0] < 1 || size[1] < 1)
      options.fail("weight_block_size", "must be two positive integers");
    blocks = {size[0], size[1]};
  }
  for (const std::string& name : reader.names()) {
    for (const std::string_view suffix : {".weight_scale_inv", ".weight_scale"}) {
      if (!name.ends_with(suffix)) continue;
      const std::string module = name.substr(0, name.size() - suffix.size());
      if (reader.has(module + ".weight")) read_fp8_weight(reader, module, name, blocks);
    }
    // How activations are quantised does not change what the weights are.
    for (const std::string_view suffix : {".input_scale", ".activation_scale", ".input_scale_ub"})
      if (name.ends_with(suffix)) reader.pass_over(name);
  }
}

}  // namespace caldera::detail
