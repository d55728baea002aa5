#include "engine/device/vulkan/glsl/neighbours.h"

#include <algorithm>

#include "engine/device/vulkan/glsl/memory.h"

namespace caldera {
namespace {

constexpr int kMostWords = 4;  // of one load or store

}  // namespace

GlslNeighbours::GlslNeighbours(const GlslOperands& operands, const KernelVariant& variant, GlslBody& body)
    : operands_(operands), variant_(variant), body_(body), width_(variant.width) {
  body.needs.neighbours |= width_ > 1;
}

Neighbours GlslNeighbours::kind(int operand) const {
  return variant_.neighbours[static_cast<std::size_t>(operand)];
}

int GlslNeighbours::words(int operand) const {
  return width_ * static_cast<int>(size_of(operands_.memory_type(operand))) / 4;
}

std::string GlslNeighbours::name(int operand) const { return fmt::format("w{}_{}", operand, group_); }

std::string GlslNeighbours::memory(int operand) const {
  return fmt::format("{}p{}", operands_.prefix(), operand);
}

void GlslNeighbours::declare_aligned() {
  std::string text;
  for (int k = 0; k < operands_.count(); ++k) {
    if (!operands_.has_memory(k) || !together(k)) continue;
    const DType type = operands_.memory_type(k);
    const std::string base = glsl_address(type, memory(k), operands_.options()) + ".x";
    const std::string bias = operands_.has_bias(k)
                                 ? fmt::format(" + uint({}b{}) * {}u", operands_.prefix(), k, size_of(type))
                                 : "";
    text += fmt::format("{}(({}{}) & {}u)", text.empty() ? "" : " | ", base, bias,
                        4 * std::min(words(k), kMostWords) - 1);
  }
  body_.line("const bool aligned = ({}) == 0u;", text);
}

/// What the loop indexes by the point must become registers.
void GlslNeighbours::open_points() { body_.open("[[unroll]] for (int e = 0; e < {}; ++e) {{", width_); }

std::string GlslNeighbours::at(int operand, int byte) const {
  const DType type = operands_.memory_type(operand);
  std::string first =
      fmt::format("element_at({}, o{}, {}u)", glsl_address(type, memory(operand), operands_.options()),
                  operand, size_of(type));
  return byte == 0 ? first : fmt::format("further({}, {}u)", first, byte);
}

void GlslNeighbours::words_of(int operand, bool store) {
  const std::string w = name(operand);
  const int count = words(operand);
  for (int from = 0; from < count; from += kMostWords) {
    const int part = std::min(count - from, kMostWords);
    const char* block = part == 1 ? "OneWord" : part == 2 ? "TwoWords" : "FourWords";
    const std::string memory = fmt::format("{}({}).v", block, at(operand, 4 * from));
    std::string list;
    for (int n = 0; n < part; ++n) list += fmt::format("{}{}[{}]", n == 0 ? "" : ", ", w, from + n);
    if (store) {
      body_.line("{} = {};", memory, part == 1 ? list : fmt::format("uvec{}({})", part, list));
    } else if (part == 1) {
      body_.line("{} = {};", list, memory);
    } else {
      body_.line("const uvec{} {}_from{} = {};", part, w, from, memory);
      for (int n = 0; n < part; ++n) body_.line("{0}[{1}] = {0}_from{2}[{3}];", w, from + n, from, n);
    }
  }
}

void GlslNeighbours::elements_of(int operand, bool store, std::string_view left) {
  const DType type = operands_.memory_type(operand);
  const int bytes = static_cast<int>(size_of(type));
  const std::string w = name(operand);
  const GlslOptions& options = operands_.options();
  const auto bits = [&](const char* e) {
    if (bytes == 8) return fmt::format("uvec2({0}[2 * {1}], {0}[2 * {1} + 1])", w, e);
    if (bytes == 4) return fmt::format("{}[{}]", w, e);
    const int each = 4 / bytes;
    return fmt::format("{0}[{1} / {2}] >> ({1} % {2} * {3}) & {4}u", w, e, each, 8 * bytes,
                       (1U << (8 * bytes)) - 1);
  };
  if (store) {
    if (!left.empty()) body_.open("if (uint(e) < {}) {{", left);
    body_.line("{};",
               glsl_store_bits(type, memory(operand), fmt::format("o{} + e", operand), bits("e"), options));
    if (!left.empty()) body_.close();
    return;
  }
  const std::string e = left.empty() ? "e" : fmt::format("min(e, int({}) - 1)", left);
  const std::string loaded =
      glsl_load_bits(type, memory(operand), fmt::format("o{} + {}", operand, e), options);
  if (bytes == 8) {
    body_.line("const uvec2 {}_e = {};", w, loaded);
    body_.line("{0}[2 * e] = {0}_e.x;", w);
    body_.line("{0}[2 * e + 1] = {0}_e.y;", w);
  } else if (bytes == 4) {
    body_.line("{}[e] = {};", w, loaded);
  } else {
    const int each = 4 / bytes;
    body_.line("{0}[e / {1}] = (e % {1} == 0 ? 0u : {0}[e / {1}]) | {2} << (e % {1} * {3});", w, each, loaded,
               8 * bytes);
  }
}

std::vector<int> GlslNeighbours::loaded(const std::vector<bool>& used) const {
  std::vector<int> list;
  for (int k = 0; k < operands_.count(); ++k) {
    if (used[static_cast<std::size_t>(k)] && operands_.has_memory(k) && !operands_.is_output(k) &&
        together(k))
      list.push_back(k);
  }
  return list;
}

void GlslNeighbours::declare_loads(const std::vector<bool>& used) {
  // Filled: a processor divides by what invocations have that take no part, too.
  for (int k : loaded(used)) {
    std::string zeros = "0u";
    for (int n = 1; n < words(k); ++n) zeros += ", 0u";
    body_.line("uint {0}[{1}] = uint[{1}]({2});", name(k), words(k), zeros);
  }
}

void GlslNeighbours::load(const std::vector<bool>& used, std::string_view whole, std::string_view left) {
  const std::vector<int> list = loaded(used);
  if (list.empty()) return;
  body_.open("if (aligned{}{}) {{", whole.empty() ? "" : " && ", whole);
  for (int k : list) words_of(k, false);
  body_.close();
  body_.open("else {{");
  open_points();
  for (int k : list) elements_of(k, false, left);
  body_.close();
  body_.close();
}

void GlslNeighbours::declare_stores(const std::vector<int>& operands) {
  for (int k : operands) body_.line("uint {}[{}];", name(k), words(k));
}

void GlslNeighbours::store(const std::vector<int>& operands, std::string_view whole, std::string_view left) {
  if (operands.empty()) return;
  body_.open("if (aligned{}{}) {{", whole.empty() ? "" : " && ", whole);
  for (int k : operands) words_of(k, true);
  body_.close();
  body_.open("else {{");
  open_points();
  for (int k : operands) elements_of(k, true, left);
  body_.close();
  body_.close();
}

void GlslNeighbours::open_each(const std::vector<bool>& used, std::string_view left) {
  open_points();
  for (int k = 0; k < operands_.count(); ++k) {
    if (!used[static_cast<std::size_t>(k)] || kind(k) != Neighbours::each) continue;
    // Of a point that is not there memory has no element.
    const std::string e =
        left.empty() || operands_.is_index(k) ? "e" : fmt::format("min(e, int({}) - 1)", left);
    body_.line("const int o{0} = o{0} + {1} * {2}t{0}_{3};", k, e, operands_.prefix(), operands_.rank() - 1);
  }
}

std::string GlslNeighbours::value(int operand, GlslCalls& calls) const {
  const DType type = operands_.memory_type(operand);
  const int bytes = static_cast<int>(size_of(type));
  const std::string w = name(operand);
  if (bytes == 8) return glsl_from_bits(type, fmt::format("uvec2({0}[2 * e], {0}[2 * e + 1])", w), calls);
  if (bytes == 4) return glsl_from_bits(type, w + "[e]", calls);
  const int each = 4 / bytes;
  return glsl_from_bits(
      type,
      fmt::format("({0}[e / {1}] >> (e % {1} * {2}) & {3}u)", w, each, 8 * bytes, (1U << (8 * bytes)) - 1),
      calls);
}

std::string GlslNeighbours::set(int operand, const std::string& value, GlslCalls& calls) const {
  const DType type = operands_.memory_type(operand);
  const int bytes = static_cast<int>(size_of(type));
  const std::string w = name(operand);
  const std::string bits = glsl_to_bits(type, value, calls);
  if (bytes == 8)
    return fmt::format("const uvec2 {0}_e = {1}; {0}[2 * e] = {0}_e.x; {0}[2 * e + 1] = {0}_e.y", w, bits);
  if (bytes == 4) return fmt::format("{}[e] = {}", w, bits);
  const int each = 4 / bytes;
  // The uppermost bits of what is stored may be anything (narrowed signed numbers).
  return fmt::format(
      "{0}[e / {1}] = (e % {1} == 0 ? 0u : {0}[e / {1}]) | (uint({2}) & {4}u) << (e % {1} * {3})", w, each,
      bits, 8 * bytes, (1U << (8 * bytes)) - 1);
}

}  // namespace caldera
