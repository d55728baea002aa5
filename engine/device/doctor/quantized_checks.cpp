// Quantised matrices: their weights, rows of them, and products along both axes, of one matrix and of
// several.
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "engine/device/doctor/checks.h"

namespace caldera::doctor {
namespace {

using reference::integer;
using reference::view;

constexpr DType kF = DType::f32;
constexpr std::int64_t kMatrices = 3;
constexpr std::int64_t kRows = 37;
constexpr std::int64_t kColumns = 512;
constexpr std::int64_t kCounts[] = {1, 3, 8, 41};  // rows of x

/// Where the f16 scales of a block lie (-1: none), and the largest number that one is multiplied with.
struct BlockScales {
  QuantizedFormat format;
  int first = -1, second = -1;
  double largest = 1;
};
constexpr BlockScales kScales[] = {
    {QuantizedFormat::q4_0, 0, -1, 8},     {QuantizedFormat::q4_1, 0, 2, 16},
    {QuantizedFormat::q5_0, 0, -1, 16},    {QuantizedFormat::q5_1, 0, 2, 32},
    {QuantizedFormat::q8_0, 0, -1, 128},   {QuantizedFormat::q2_k, 80, 82, 64},
    {QuantizedFormat::q3_k, 108, -1, 128}, {QuantizedFormat::q4_k, 0, 2, 1024},
    {QuantizedFormat::q5_k, 0, 2, 2048},   {QuantizedFormat::q6_k, 208, -1, 4096},
    {QuantizedFormat::iq4_nl, 0, -1, 128},
};

QuantizedLayout layout_of(QuantizedFormat format) {
  if (is_block_format(format)) return {format};
  if (format == QuantizedFormat::fp8_e4m3) return {format, 100, 10};
  return {format, 64};
}

/// Weights of at most about 2.
double magnitude(PlanCase& plan, double largest) {
  const double v = std::uniform_real_distribution<double>(1, 2)(plan.random()) / largest;
  return plan.random()() % 2 == 0 ? v : -v;
}

void fill_blocks(PlanCase& plan, int buffer, QuantizedFormat format, std::int64_t blocks) {
  const int bytes = facts(format).block_bytes;
  const auto put_half = [&](std::int64_t at, double value) {
    const std::uint16_t bits = to_half(static_cast<float>(value)).bits;
    plan.set(buffer, at, integer(bits & 255));
    plan.set(buffer, at + 1, integer(bits >> 8));
  };
  for (std::int64_t b = 0; b < blocks; ++b) {
    for (int i = 0; i < bytes; ++i)
      plan.set(buffer, b * bytes + i, integer(static_cast<std::int64_t>(plan.random()() % 256)));
    if (format == QuantizedFormat::mxfp4)
      plan.set(buffer, b * bytes, integer(static_cast<std::int64_t>(118 + plan.random()() % 7)));
    for (const BlockScales& s : kScales) {
      if (s.format != format) continue;
      put_half(b * bytes + s.first, magnitude(plan, s.largest));
      if (s.second >= 0) put_half(b * bytes + s.second, magnitude(plan, s.largest));
    }
  }
}

int add_part(PlanCase& plan, const QuantizedLayout& layout, const QuantizedPart& part) {
  const std::int64_t elements = kMatrices * part.rows * part.columns;
  const DType type = part.is_any_float ? (is_affine(layout.format) ? DType::f16 : DType::bf16) : part.dtype;
  const int buffer = plan.input(type, elements, {0.001, 0.002});
  if (part.name == "table") {
    for (std::int64_t i = 0; i < elements; ++i) plan.set(buffer, i, reference::floating(magnitude(plan, 2)));
  } else if (part.name == "blocks") {
    fill_blocks(plan, buffer, layout.format, elements / facts(layout.format).block_bytes);
  } else if (part.name == "codes") {
    for (std::int64_t i = 0; i < elements; ++i) {
      std::int64_t code = static_cast<std::int64_t>(plan.random()()) & (type == DType::u8 ? 255 : 0xffffffff);
      if (layout.format == QuantizedFormat::fp8_e4m3 && code % 128 == 127) --code;  // no number
      plan.set(buffer, i, integer(code));
    }
  }
  return buffer;
}

/// The steps of one matrix after the other, or of all of them at once.
class QuantizedCase {
 public:
  QuantizedCase(PlanCase& plan, const QuantizedLayout& layout) : plan_(plan) {
    what_ = {.layout = layout, .matrices = kMatrices, .rows = kRows, .columns = kColumns};
    for (const QuantizedPart& part : parts_of(layout, kRows, kColumns)) {
      const std::int64_t size = part.rows * part.columns;
      parts_.push_back(view(add_part(plan, layout, part), {size, part.columns, 1}));
      sizes_.push_back(size);
    }
  }

  /// `matrix` >= 0: of that one alone, which is not the first of its buffer.
  void step(QuantizedWork work, std::int64_t count, bool is_indexed, std::int64_t matrix = -1) {
    QuantizedNode what = what_;
    what.work = work;
    what.is_indexed = is_indexed;
    if (matrix >= 0) what.matrices = 1;
    const bool across = work == QuantizedWork::transposed_product;
    const bool takes = work == QuantizedWork::take_rows;
    std::vector<Operand> operands;
    if (what.is_product()) {
      const std::int64_t width = across ? kRows : kColumns;
      const int x = plan_.input(kF, count * width);
      operands.push_back(across ? view(x, {width, 1, 0}) : view(x, {width, 0, 1}));
    }
    if (takes || is_indexed) operands.push_back(view(add_indices(count, takes), {1, 0, 0}));
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      operands.push_back(parts_[i]);
      if (matrix >= 0) operands.back().offset = matrix * sizes_[i];
    }
    const std::int64_t width = work == QuantizedWork::product ? kRows : kColumns;
    const std::int64_t results = work == QuantizedWork::dequantize ? kMatrices * kRows : count;
    const int out = plan_.output(kF, results * width);
    if (work == QuantizedWork::dequantize)
      operands.push_back(view(out, {kRows * width, width, 1}));
    else if (work == QuantizedWork::product)
      operands.push_back(view(out, {width, 1, 0}));
    else
      operands.push_back(view(out, {width, 0, 1}));
    const std::int64_t m = work == QuantizedWork::dequantize ? kMatrices : count;
    plan_.indexed(QuantizedStep{what}, kF, Shape{m, takes ? 1 : kRows, kColumns}, std::move(operands));
  }

 private:
  /// Some lie outside.
  int add_indices(std::int64_t count, bool of_rows) {
    const int index = plan_.input(DType::i32, count);
    std::uniform_int_distribution<std::int64_t> pick(-1, of_rows ? kMatrices * kRows : kMatrices);
    std::int64_t value = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      if (of_rows || i % 3 == 0) value = pick(plan_.random());
      plan_.set(index, i, integer(value));
    }
    return index;
  }

  PlanCase& plan_;
  QuantizedNode what_;
  std::vector<Operand> parts_;
  std::vector<std::int64_t> sizes_;
};

}  // namespace

void check_quantized(Examination& x) {
  for (int f = 0; f < kQuantizedFormatCount; ++f) {
    const auto format = static_cast<QuantizedFormat>(f);
    const std::string prefix = std::string(name(format)) + ": ";
    PlanCase weights(x.device(), static_cast<std::uint32_t>(f + 1));
    QuantizedCase of_weights(weights, layout_of(format));
    of_weights.step(QuantizedWork::dequantize, 0, false);
    of_weights.step(QuantizedWork::take_rows, 19, false);
    x.compare(prefix + "weights and rows", weights,
              {{0x1p-23, 0}, "one rounding, or two, of a product's sum"});

    PlanCase products(x.device(), static_cast<std::uint32_t>(f + 101));
    QuantizedCase of_products(products, layout_of(format));
    for (const std::int64_t count : kCounts) {
      for (const QuantizedWork work : {QuantizedWork::product, QuantizedWork::transposed_product}) {
        of_products.step(work, count, false, count % kMatrices);
        of_products.step(work, count, true);
      }
    }
    // 512 terms of at most 4 by 2, each rounded.
    x.compare(prefix + "products", products, {{1e-5, 5e-4}, "512 roundings of sums up to 4096"});
  }
}

}  // namespace caldera::doctor
