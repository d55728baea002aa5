// bitsandbytes' 4-bit weights, NF4 and FP4 (functional.py, QuantState.from_dict): codes of the flattened
// matrix, two a byte, the first in the high nibble; an absolute maximum a block, itself quantised to 8 bits
// or not; and the table of values.
#include <fmt/format.h>

#include <cmath>
#include <numeric>

#include "engine/base/error.h"
#include "lm/formats/folders/schemes.h"
#include "lm/formats/weights/computed_weight.h"
#include "lm/formats/weights/packed_weight.h"

namespace caldera::detail {
namespace {

constexpr std::string_view kState = ".quant_state.bitsandbytes__";

/// The JSON that a weight's quant_state holds as bytes.
struct State {
  std::int64_t block = 0;
  std::vector<std::int64_t> shape;
  std::int64_t nested_block = 0;
  double nested_offset = 0;
  bool is_nested = false;
};

State read_state(const StoredTensor& tensor) {
  const std::string_view text(reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size());
  const JsonDocument document(text, "tensor " + printable(tensor.name));
  const JsonFields& fields = document.fields();
  State state;
  state.block = fields.require_integer("blocksize");
  state.shape = fields.integers("shape");
  if (state.block < 2 || state.block > 1 << 20) fields.fail("blocksize", "is out of range");
  if (state.shape.size() != 2 || state.shape[0] < 1 || state.shape[1] < 1)
    fields.fail("shape", "is not that of a matrix");
  if (fields.has("nested_blocksize")) {
    state.is_nested = true;
    state.nested_block = fields.require_integer("nested_blocksize");
    state.nested_offset = fields.number("nested_offset").value_or(0);
    if (state.nested_block < 1) fields.fail("nested_blocksize", "is out of range");
  }
  return state;
}

/// Absolute maxima that were quantised once more: table[code] * maximum of the block of blocks + offset, each
/// rounded to f32.
std::vector<float> nested_scales(const StoredTensor& codes, const StoredTensor& maxima,
                                 const StoredTensor& table, const State& state) {
  const auto map = numbers<float>(table.bytes);
  const auto outer = numbers<float>(maxima.bytes);
  std::vector<float> scales(codes.bytes.size());
  for (std::size_t i = 0; i < scales.size(); ++i) {
    const float scaled = map[std::to_integer<std::size_t>(codes.bytes[i])] *
                         outer[i / static_cast<std::size_t>(state.nested_block)];
    // Through double, so that no compiler makes one rounding of the product and the sum.
    scales[i] = static_cast<float>(static_cast<double>(scaled) +
                                   static_cast<double>(static_cast<float>(state.nested_offset)));
  }
  return scales;
}

/// The maximum of each group of `group` values, which divides blocks, of `count` values in all.
std::vector<float> per_group(std::vector<float> maxima, std::int64_t count, std::int64_t block,
                             std::int64_t group) {
  if (group == block) return maxima;
  std::vector<float> result(static_cast<std::size_t>(count / group));
  for (std::size_t i = 0; i < result.size(); ++i)
    result[i] = maxima[i / static_cast<std::size_t>(block / group)];
  return result;
}

void read_bitsandbytes_weight(FolderReader& reader, const std::string& weight,
                              const std::string& state_name) {
  const State state = read_state(reader.take(state_name));
  std::int64_t count = 0;
  if (__builtin_mul_overflow(state.shape[0], state.shape[1], &count))
    FolderReader::fail(state_name, "has a shape whose size overflows");
  const std::int64_t blocks = (count - 1) / state.block + 1;
  const StoredTensor codes = reader.take(weight);
  if (codes.info.dtype != DType::u8 || static_cast<std::int64_t>(codes.bytes.size()) != (count - 1) / 2 + 1)
    FolderReader::fail(codes,
                       fmt::format("does not hold the {} codes of its quant_state, two a byte", count));
  const StoredTensor table = reader.take(weight + ".quant_map", "F32", Shape{16});

  std::function<std::vector<float>()> scales;
  if (state.is_nested) {
    const StoredTensor quantized = reader.take(weight + ".absmax", "U8", Shape{blocks});
    const std::int64_t outer = (blocks - 1) / state.nested_block + 1;
    const StoredTensor maxima = reader.take(weight + ".nested_absmax", "F32", Shape{outer});
    const StoredTensor map = reader.take(weight + ".nested_quant_map", "F32", Shape{256});
    scales = [=] { return nested_scales(quantized, maxima, map, state); };
  } else {
    const StoredTensor maxima = reader.take(weight + ".absmax", "F32", Shape{blocks});
    scales = [=] { return numbers<float>(maxima.bytes); };
  }

  const Shape shape{state.shape[0], state.shape[1]};
  // Blocks that run over the ends of rows are groups of fewer columns, some of which have one maximum.
  const QuantizedLayout layout{QuantizedFormat::codebook4, std::gcd(state.block, shape[1]), 1};
  if (why_no_layout(layout, shape[0], shape[1]).empty()) {
    std::vector<PackedPart> parts;
    parts.push_back({DType::u8, ByteParts(codes.bytes), {}});
    parts.push_back(
        {DType::f32, {}, [=] { return bytes_of(per_group(scales(), count, state.block, layout.group)); }});
    parts.push_back({DType::f32, ByteParts(table.bytes), {}});
    return add_checked(reader, weight,
                       [&] { return std::make_unique<PackedWeight>(shape, layout, std::move(parts)); });
  }
  // Rows that are no whole groups of any size that devices read.
  reader.add(weight, std::make_unique<ComputedWeight>(shape, "codebook4", [=] {
               const auto map = numbers<float>(table.bytes);
               const auto maxima = scales();
               std::vector<float> values(static_cast<std::size_t>(count));
               for (std::size_t i = 0; i < values.size(); ++i) {
                 const auto byte = std::to_integer<unsigned>(codes.bytes[i / 2]);
                 values[i] = map[i % 2 == 0 ? byte >> 4 : byte & 15] *
                             maxima[i / static_cast<std::size_t>(state.block)];
               }
               return values;
             }));
}

}  // namespace

void read_bitsandbytes(FolderReader& reader, const JsonFields& options) {
  if (options.boolean("load_in_8bit").value_or(false) || options.boolean("_load_in_8bit").value_or(false))
    options.fail("load_in_8bit", "is set: LLM.int8 is not supported (supported: 4 bits, NF4 and FP4)");
  for (const std::string& name : reader.names()) {
    const std::size_t at = name.find(kState);
    if (at != name.npos) read_bitsandbytes_weight(reader, name.substr(0, at), name);
  }
}

}  // namespace caldera::detail
