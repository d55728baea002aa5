// GPTQ (AutoGPTQ, GPTQModel) and AWQ (AutoAWQ's GEMM form): codes in i32 along the inputs (GPTQ) or the
// outputs (AWQ), zero points in i32 along the outputs, scales (groups, outputs). A weight is scale * (code -
// zero). They become affine codes along the inputs with the bias -zero * scale, which f32 holds exactly, so
// that nothing is lost.
#include <fmt/format.h>

#include <array>

#include "engine/base/error.h"
#include "lm/formats/folders/gptq_rules.h"
#include "lm/formats/folders/schemes.h"
#include "lm/formats/weights/computed_weight.h"
#include "lm/formats/weights/packed_weight.h"
#include "lm/formats/weights/plain_weight.h"

namespace caldera::detail {
namespace {

/// One quantised module, its sizes checked.
struct Module {
  StoredTensor codes, zeros, scales;
  std::size_t in = 0, out = 0;
  std::size_t bits = 4;
  std::size_t group = 128;
  bool is_awq = false;
  unsigned zero_added = 0;             ///< GPTQ's first format stores zero - 1
  std::vector<std::int32_t> group_of;  ///< of each input, where groups are not runs of inputs

  std::size_t groups() const { return in / group; }
  unsigned mask() const { return (1U << bits) - 1; }

  /// The code number `place` of the words beginning at `words`, `stride` words apart.
  unsigned field(std::span<const std::byte> words, std::size_t word, std::size_t place) const {
    std::uint32_t value = 0;
    std::memcpy(&value, words.data() + word * sizeof(value), sizeof(value));
    return value >> (place * bits) & mask();
  }
  /// Where the nibble of column `column` stands in its word.
  std::size_t place_of(std::size_t column) const {
    constexpr std::array<std::size_t, 8> kAwqOrder{0, 4, 1, 5, 2, 6, 3, 7};
    const std::size_t per_word = 32 / bits;
    return is_awq ? kAwqOrder[column % per_word] : column % per_word;
  }
  unsigned code(std::size_t i, std::size_t o) const {
    const std::size_t per_word = 32 / bits;
    return is_awq ? field(codes.bytes, i * (out / per_word) + o / per_word, place_of(o))
                  : field(codes.bytes, i / per_word * out + o, i % per_word);
  }
  unsigned zero(std::size_t g, std::size_t o) const {
    const std::size_t per_word = 32 / bits;
    return (field(zeros.bytes, g * (out / per_word) + o / per_word, place_of(o)) + zero_added) & mask();
  }

  /// Codes (out, in), the first in the low bits of a u32.
  std::vector<std::byte> packed_codes() const {
    const std::size_t per_word = 32 / bits;
    std::vector<std::uint32_t> words(in / per_word * out);
    for (std::size_t i = 0; i < in; ++i)
      for (std::size_t o = 0; o < out; ++o)
        words[o * (in / per_word) + i / per_word] |= code(i, o) << (i % per_word * bits);
    return bytes_of(words);
  }
  /// (out, groups): the scales, or what is added to code * scale.
  std::vector<float> scales_by_row(bool biases) const {
    const std::vector<float> s = to_floats(scales.bytes, scales.info.dtype);
    std::vector<float> rows(s.size());
    for (std::size_t g = 0; g < groups(); ++g) {
      for (std::size_t o = 0; o < out; ++o) {
        const float scale = s[g * out + o];
        rows[o * groups() + g] = biases ? -static_cast<float>(zero(g, o)) * scale : scale;
      }
    }
    return rows;
  }
  /// The matrix (out, in), where groups are no runs of inputs.
  std::vector<float> values() const {
    const std::vector<float> s = to_floats(scales.bytes, scales.info.dtype);
    std::vector<float> matrix(in * out);
    for (std::size_t i = 0; i < in; ++i) {
      const std::size_t g = group_of.empty() ? i / group : static_cast<std::size_t>(group_of[i]);
      for (std::size_t o = 0; o < out; ++o) {
        const int steps = static_cast<int>(code(i, o)) - static_cast<int>(zero(g, o));
        matrix[o * in + i] = s[g * out + o] * static_cast<float>(steps);
      }
    }
    return matrix;
  }
};

/// The tensors of a module, checked against one another.
Module read_module(FolderReader& reader, const std::string& name, const GptqSettings& options, bool is_awq) {
  Module m;
  m.is_awq = is_awq;
  m.bits = static_cast<std::size_t>(options.bits);
  const std::int64_t per_word = 32 / options.bits;
  m.codes = reader.take(name + ".qweight");
  const Shape& packed = m.codes.info.shape;
  if (m.codes.info.dtype != DType::i32 || packed.rank() != 2)
    FolderReader::fail(m.codes, fmt::format("is {} {}, expected an I32 matrix", type_name(m.codes.info),
                                            packed.to_string()));
  std::int64_t in = packed[0];
  std::int64_t out = packed[1];
  if (__builtin_mul_overflow(is_awq ? out : in, per_word, is_awq ? &out : &in))
    FolderReader::fail(m.codes, "has a shape whose size overflows");
  const std::int64_t group = options.group == -1 ? in : options.group;
  if (in % group != 0 || out % per_word != 0)
    FolderReader::fail(m.codes,
                       fmt::format("has {} inputs and {} outputs, which groups of {} and words of {} "
                                   "do not divide",
                                   in, out, group, per_word));
  m.zeros = reader.take(name + ".qzeros", "I32", Shape{in / group, out / per_word});
  m.scales = reader.take(name + ".scales");
  if (m.scales.info.shape != Shape{in / group, out} || !is_floating(m.scales.info.dtype) ||
      m.scales.info.dtype == DType::f64)
    FolderReader::fail(m.scales,
                       fmt::format("is {} {}, expected floats {}", type_name(m.scales.info),
                                   m.scales.info.shape.to_string(), Shape{in / group, out}.to_string()));
  m.in = static_cast<std::size_t>(in);
  m.out = static_cast<std::size_t>(out);
  m.group = static_cast<std::size_t>(group);
  return m;
}

/// The group of each input; empty where groups are runs of inputs, as they are without act-order.
std::vector<std::int32_t> read_groups(FolderReader& reader, const std::string& name, const Module& m) {
  const StoredTensor tensor = reader.take(name, "I32", Shape{static_cast<std::int64_t>(m.in)});
  std::vector<std::int32_t> groups = numbers<std::int32_t>(tensor.bytes);
  bool runs = true;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (groups[i] < 0 || static_cast<std::size_t>(groups[i]) >= m.groups())
      FolderReader::fail(tensor, fmt::format("names group {} of {}", groups[i], m.groups()));
    runs = runs && static_cast<std::size_t>(groups[i]) == i / m.group;
  }
  return runs ? std::vector<std::int32_t>{} : groups;
}

void add(FolderReader& reader, const std::string& weight, Module read) {
  const Shape shape{static_cast<std::int64_t>(read.out), static_cast<std::int64_t>(read.in)};
  const auto m = std::make_shared<const Module>(std::move(read));
  if (!m->group_of.empty() || m->group % 32 != 0) {
    return reader.add(weight, std::make_unique<ComputedWeight>(shape, m->is_awq ? "awq" : "gptq",
                                                               [m] { return m->values(); }));
  }
  add_checked(reader, weight, [&] {
    std::vector<PackedPart> parts;
    parts.push_back({DType::u32, {}, [m] { return m->packed_codes(); }});
    parts.push_back({DType::f32, {}, [m] { return bytes_of(m->scales_by_row(false)); }});
    parts.push_back({DType::f32, {}, [m] { return bytes_of(m->scales_by_row(true)); }});
    const auto format = m->bits == 4 ? QuantizedFormat::affine4 : QuantizedFormat::affine8;
    return std::make_unique<PackedWeight>(
        shape, QuantizedLayout{format, static_cast<std::int64_t>(m->group), 1}, std::move(parts));
  });
}

/// Calls `use(module)` for each module that has codes.
template <class Use>
void for_each_module(const FolderReader& reader, const Use& use) {
  constexpr std::string_view kCodes = ".qweight";
  for (const std::string& name : reader.names())
    if (name.ends_with(kCodes)) use(name.substr(0, name.size() - kCodes.size()));
}

}  // namespace

void read_gptq(FolderReader& reader, const JsonFields& options) {
  const GptqRules rules(options, read_gptq_settings(options, "bits", "group_size"));
  const std::string format =
      options.string("checkpoint_format").value_or(options.string("format").value_or("gptq"));
  if (format != "gptq" && format != "gptq_v2")
    options.fail(
        "checkpoint_format",
        fmt::format("is '{}', which is not supported (supported: gptq, gptq_v2)", printable(format)));
  for_each_module(reader, [&](const std::string& name) {
    Module module = read_module(reader, name, rules.settings_of(name), false);
    module.zero_added = format == "gptq" ? 1 : 0;
    if (reader.has(name + ".g_idx")) module.group_of = read_groups(reader, name + ".g_idx", module);
    add(reader, name + ".weight", std::move(module));
  });
}

void read_awq(FolderReader& reader, const JsonFields& options) {
  const GptqSettings read = read_gptq_settings(options, options.has("bits") ? "bits" : "w_bit",
                                               options.has("group_size") ? "group_size" : "q_group_size");
  const std::string version = options.string("version").value_or("gemm");
  if (version != "gemm" && version != "GEMM")
    options.fail("version",
                 fmt::format("is '{}', which is not supported (supported: gemm)", printable(version)));
  if (read.bits != 4) options.fail("bits", "is not 4, which is not supported");
  for_each_module(reader, [&](const std::string& name) {
    add(reader, name + ".weight", read_module(reader, name, read, true));
  });
}

}  // namespace caldera::detail
