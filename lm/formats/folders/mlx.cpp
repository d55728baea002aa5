// MLX's quantised weights (mlx.core.quantize): "affine", codes in u32, the first in the low bits, with a
// scale and a bias a group; and "mxfp4". A weight is "NAME.weight", "NAME.scales" and, where affine,
// "NAME.biases".
#include <fmt/format.h>

#include "engine/base/error.h"
#include "lm/formats/folders/mxfp4_blocks.h"
#include "lm/formats/folders/schemes.h"
#include "lm/formats/weights/computed_weight.h"
#include "lm/formats/weights/packed_weight.h"
#include "lm/formats/weights/plain_weight.h"

namespace caldera::detail {
namespace {

struct Settings {
  std::int64_t group = 64;
  std::int64_t bits = 4;
  std::string mode = "affine";
};

/// What `fields` say; the rest as in `settings`.
Settings read_settings(const JsonFields& fields, Settings settings) {
  settings.group = fields.integer("group_size").value_or(settings.group);
  settings.bits = fields.integer("bits").value_or(settings.bits);
  settings.mode = fields.string("mode").value_or(settings.mode);
  if (settings.group < 1 || settings.group > 1 << 20) fields.fail("group_size", "is out of range");
  if (settings.bits < 2 || settings.bits > 8) fields.fail("bits", "must lie in 2..8");
  if (settings.mode != "affine" && settings.mode != "mxfp4")
    fields.fail("mode", fmt::format("is '{}', which is not supported (supported: affine, mxfp4)",
                                    printable(settings.mode)));
  return settings;
}

std::optional<QuantizedFormat> affine_format(std::int64_t bits) {
  if (bits == 2) return QuantizedFormat::affine2;
  if (bits == 4) return QuantizedFormat::affine4;
  if (bits == 8) return QuantizedFormat::affine8;
  return std::nullopt;
}

/// Values of codes of any width, which run on from byte to byte, the low bits first.
std::vector<float> unpack(const StoredTensor& codes, const StoredTensor& scales, const StoredTensor& biases,
                          std::int64_t columns, const Settings& settings) {
  const auto s = to_floats(scales.bytes, scales.info.dtype);
  const auto b = to_floats(biases.bytes, biases.info.dtype);
  const auto bits = static_cast<std::size_t>(settings.bits);
  const auto group = static_cast<std::size_t>(settings.group);
  const auto width = static_cast<std::size_t>(columns);
  const std::size_t row_bytes = width * bits / 8;
  std::vector<float> values(codes.bytes.size() / row_bytes * width);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t at = i % width * bits;
    const std::byte* row = codes.bytes.data() + i / width * row_bytes;
    unsigned word = std::to_integer<unsigned>(row[at / 8]);
    if (at / 8 + 1 < row_bytes) word |= std::to_integer<unsigned>(row[at / 8 + 1]) << 8;
    const unsigned code = word >> (at % 8) & ((1U << bits) - 1);
    const std::size_t g = i / group;
    const float scaled = s[g] * static_cast<float>(code);
    values[i] = static_cast<float>(static_cast<double>(scaled) + static_cast<double>(b[g]));
  }
  return values;
}

void read_affine(FolderReader& reader, const std::string& module, const Settings& settings) {
  const StoredTensor codes = reader.take(module + ".weight");
  const Shape& packed = codes.info.shape;
  if (codes.info.dtype != DType::u32 || packed.rank() < 2 || packed.rank() > 3)
    FolderReader::fail(codes, fmt::format("is {} {}, expected U32 codes of a matrix", type_name(codes.info),
                                          packed.to_string()));
  Shape shape = packed;
  Shape groups = packed;
  const int last = packed.rank() - 1;
  if (__builtin_mul_overflow(packed[last], 32, &shape[last]) || shape[last] % settings.bits != 0)
    FolderReader::fail(codes, fmt::format("does not hold whole codes of {} bits", settings.bits));
  shape[last] /= settings.bits;
  if (shape[last] % settings.group != 0)
    FolderReader::fail(codes,
                       fmt::format("has {} columns, which are no groups of {}", shape[last], settings.group));
  groups[last] = shape[last] / settings.group;
  const StoredTensor scales = reader.take(module + ".scales");
  const StoredTensor biases = reader.take(module + ".biases");
  for (const StoredTensor* part : {&scales, &biases}) {
    if (part->info.shape != groups || !is_floating(part->info.dtype) || part->info.dtype == DType::f64)
      FolderReader::fail(*part, fmt::format("is {} {}, expected floats {}", type_name(part->info),
                                            part->info.shape.to_string(), groups.to_string()));
  }
  const std::string weight = module + ".weight";
  const auto format = affine_format(settings.bits);
  if (format && settings.group % 32 == 0) {
    return add_checked(reader, weight, [&] {
      std::vector<PackedPart> parts;
      parts.push_back({DType::u32, ByteParts(codes.bytes), {}});
      parts.push_back({scales.info.dtype, ByteParts(scales.bytes), {}});
      parts.push_back({biases.info.dtype, ByteParts(biases.bytes), {}});
      return std::make_unique<PackedWeight>(shape, QuantizedLayout{*format, settings.group, 1},
                                            std::move(parts));
    });
  }
  const std::int64_t columns = shape[last];
  reader.add(weight, std::make_unique<ComputedWeight>(shape, fmt::format("affine{}", settings.bits), [=] {
               return unpack(codes, scales, biases, columns, settings);
             }));
}

/// Codes as gpt-oss has them: byte j of a block holds elements 2j and 2j + 1.
void read_mxfp4_module(FolderReader& reader, const std::string& module, const Settings& settings) {
  const StoredTensor codes = reader.take(module + ".weight");
  const Shape& packed = codes.info.shape;
  const int last = packed.rank() - 1;
  if (codes.info.dtype != DType::u32 || packed.rank() < 2 || packed.rank() > 3 || packed[last] % 4 != 0 ||
      settings.group != 32 || settings.bits != 4)
    FolderReader::fail(codes, fmt::format("is {} {}, expected U32 codes of MXFP4", type_name(codes.info),
                                          packed.to_string()));
  Shape groups = packed;
  groups[last] = packed[last] / 4;
  const StoredTensor scales = reader.take(module + ".scales", "U8", groups);
  Shape shape = packed;
  shape[last] = packed[last] * 8;
  add_checked(reader, module + ".weight", [&] { return mxfp4_weight(shape, codes, scales); });
}

}  // namespace

void read_mlx(FolderReader& reader, const JsonFields& options) {
  const Settings all = read_settings(options, {});
  for (const std::string& name : reader.names()) {
    if (!name.ends_with(".scales")) continue;
    const std::string module = name.substr(0, name.size() - std::string_view(".scales").size());
    if (!reader.has(module + ".weight") || reader.info(module + ".weight").dtype != DType::u32) continue;
    Settings settings = all;
    if (options.kind(module.c_str()) == JsonKind::object)
      settings = read_settings(options.object(module.c_str(), options.where()), all);
    if (settings.mode == "mxfp4")
      read_mxfp4_module(reader, module, settings);
    else
      read_affine(reader, module, settings);
  }
}

}  // namespace caldera::detail
