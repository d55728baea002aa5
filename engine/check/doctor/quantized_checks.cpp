// Quantised matrices: their weights, rows of them, and products along both axes, of one matrix and of
// several.
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "engine/check/doctor/checks.h"

namespace caldera::doctor {
namespace {

using reference::integer;
using reference::view;

constexpr std::int64_t kMatrices = 3;
constexpr std::int64_t kRows = 37;
constexpr std::int64_t kColumns = 256;
constexpr std::int64_t kFewRows = 2, kManyRows = 41;  // of x
constexpr std::int64_t kCounts[] = {1, kFewRows, 3, 8, kManyRows};

QuantizedLayout layout_of(QuantizedFormat format) {
  if (is_block_format(format) || is_plain(format)) return {format};
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
    for (const int scale : {facts(format).scale, facts(format).second_scale})
      if (scale >= 0) put_half(b * bytes + scale, magnitude(plan, facts(format).largest));
  }
}

/// `words`: the type of 32 bits that the device has.
int add_part(PlanCase& plan, const QuantizedLayout& layout, const QuantizedPart& part, DType words) {
  const std::int64_t elements = kMatrices * part.rows * part.columns;
  DType type = part.dtype == DType::u32 ? words : part.dtype;
  if (part.is_any_float) type = is_affine(layout.format) ? DType::f16 : DType::bf16;
  const reference::Range range =
      part.name == "weights" ? reference::Range{-2, 2} : reference::Range{0.001, 0.002};
  const int buffer = plan.input(type, elements, range);
  if (part.name == "table") {
    for (std::int64_t i = 0; i < elements; ++i) plan.set(buffer, i, reference::floating(magnitude(plan, 2)));
  } else if (part.name == "blocks") {
    fill_blocks(plan, buffer, layout.format, elements / facts(layout.format).block_bytes);
  } else if (part.name == "codes") {
    for (std::int64_t i = 0; i < elements; ++i) {
      std::int64_t code = static_cast<std::int64_t>(plan.random()());
      if (type == DType::u8) code &= 255;
      if (type == DType::i32) code -= std::int64_t{1} << 31;
      if (layout.format == QuantizedFormat::fp8_e4m3 && code % 128 == 127) --code;  // no number
      plan.set(buffer, i, integer(code));
    }
  }
  return buffer;
}

/// A step to be.
struct Wanted {
  QuantizedWork work;
  std::int64_t count = 0;  // rows of x, or indices
  bool is_indexed = false;
  std::int64_t matrix = -1;  // of that one alone, which need not be the first of its buffer
};

/// Some are outside.
int add_chosen_matrices(PlanCase& plan, const Wanted& wanted) {
  const bool of_rows = wanted.work == QuantizedWork::take_rows;
  const int index = plan.input(DType::i32, wanted.count);
  std::uniform_int_distribution<std::int64_t> pick(-1, of_rows ? kMatrices * kRows : kMatrices);
  std::int64_t value = 0;
  for (std::int64_t i = 0; i < wanted.count; ++i) {
    if (of_rows || i % 3 == 0) value = pick(plan.random());
    plan.set(index, i, integer(value));
  }
  return index;
}

/// Adds the steps to the plan. All inputs come before the outputs.
void add_quantized_steps(PlanCase& plan, const QuantizedLayout& layout, const std::vector<Wanted>& steps,
                         DType words) {
  const std::vector<QuantizedPart> forms = parts_of(layout, kRows, kColumns);
  std::vector<Operand> parts;
  parts.reserve(forms.size());
  for (const QuantizedPart& part : forms)
    parts.push_back(view(add_part(plan, layout, part, words), {part.rows * part.columns, part.columns, 1}));
  std::vector<std::vector<Operand>> operands;
  for (const Wanted& wanted : steps) {
    const bool across = wanted.work == QuantizedWork::transposed_product;
    std::vector<Operand>& own = operands.emplace_back();
    if (across || wanted.work == QuantizedWork::product) {
      const std::int64_t width = across ? kRows : kColumns;
      const int x = plan.input(DType::f32, wanted.count * width);
      own.push_back(across ? view(x, {width, 1, 0}) : view(x, {width, 0, 1}));
    }
    if (wanted.is_indexed || wanted.work == QuantizedWork::take_rows)
      own.push_back(view(add_chosen_matrices(plan, wanted), {1, 0, 0}));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      own.push_back(parts[i]);
      if (wanted.matrix >= 0) own.back().offset = wanted.matrix * forms[i].rows * forms[i].columns;
    }
  }
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const Wanted& wanted = steps[i];
    const bool takes = wanted.work == QuantizedWork::take_rows;
    const bool all = wanted.work == QuantizedWork::dequantize;
    const std::int64_t width = wanted.work == QuantizedWork::product ? kRows : kColumns;
    const int out = plan.output(DType::f32, (all ? kMatrices * kRows : wanted.count) * width);
    if (all)
      operands[i].push_back(view(out, {kRows * width, width, 1}));
    else if (wanted.work == QuantizedWork::product)
      operands[i].push_back(view(out, {width, 1, 0}));
    else
      operands[i].push_back(view(out, {width, 0, 1}));
    const QuantizedNode what{.work = wanted.work,
                             .layout = layout,
                             .matrices = wanted.matrix >= 0 ? 1 : kMatrices,
                             .rows = kRows,
                             .columns = kColumns,
                             .is_indexed = wanted.is_indexed};
    const Shape dims{all ? kMatrices : wanted.count, takes ? 1 : kRows, kColumns};
    plan.indexed(QuantizedStep{what}, DType::f32, dims, std::move(operands[i]));
  }
}

}  // namespace

void check_quantized(Examination& x) {
  const DType words = x.supports(DType::u32) ? DType::u32 : DType::i32;
  for (int f = 0; f < kQuantizedFormatCount; ++f) {
    const auto format = static_cast<QuantizedFormat>(f);
    const std::string prefix = std::string(name(format)) + ": ";
    PlanCase weights(x.device(), static_cast<std::uint32_t>(f + 1));
    add_quantized_steps(weights, layout_of(format),
                        {{QuantizedWork::dequantize}, {QuantizedWork::take_rows, 19}}, words);
    x.compare(prefix + "weights and rows", weights,
              {{0x1p-23, 0}, "one rounding, or two, of a product's sum"});

    std::vector<Wanted> steps;
    for (const std::int64_t count : kCounts) {
      // Kernels for other numbers of rows differ by a constant: one format stands for all.
      if (count != kFewRows && count != kManyRows && format != QuantizedFormat::q4_k) continue;
      for (const QuantizedWork work : {QuantizedWork::product, QuantizedWork::transposed_product}) {
        steps.push_back({work, count, false, count % kMatrices});
        if (count != kFewRows || work == QuantizedWork::product) steps.push_back({work, count, true});
      }
    }
    PlanCase products(x.device(), static_cast<std::uint32_t>(f + 101));
    add_quantized_steps(products, layout_of(format), steps, words);
    // 256 terms of at most 4 by 2, each rounded.
    x.compare(prefix + "products", products, {{1e-5, 5e-4}, "256 roundings of sums up to 2048"});
  }
}

}  // namespace caldera::doctor
