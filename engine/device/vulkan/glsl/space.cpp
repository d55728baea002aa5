#include "engine/device/vulkan/glsl/space.h"

#include <algorithm>
#include <bit>

namespace caldera {

std::uint32_t magic_divisor(std::int64_t d) {
  d = std::max<std::int64_t>(d, 1);  // of an empty row nothing is asked
  // Granlund and Montgomery, 1994: floor(2^32 * (2^shift - d) / d) + 1.
  const int shift = d == 1 ? 0 : std::bit_width(static_cast<std::uint64_t>(d - 1));
  const std::uint64_t excess = (std::uint64_t{1} << shift) - static_cast<std::uint64_t>(d);
  return static_cast<std::uint32_t>((excess << 32) / static_cast<std::uint64_t>(d) + 1);
}

void append_coordinates(const GlslOperands& operands, GlslPart part, const char* number,
                        const std::vector<bool>& used, GlslBody& body) {
  const int first = part == GlslPart::along ? operands.kept_rank() : 0;
  const int last = part == GlslPart::kept ? operands.kept_rank() : operands.rank();
  bool needed = false;
  for (int k = 0; k < operands.count(); ++k)
    needed |= used[static_cast<std::size_t>(k)] && operands.strides(k) > first;
  if (!needed || first == last) return;
  if (last - first == 1) {
    body.line("const int c{} = int({});", first, number);
    return;
  }
  body.line("uint q{} = {};", first, number);
  for (int d = last - 1; d > first; --d) {
    body.needs.calls.insert("quotient");
    body.line("const uint q{0}_{1} = quotient(q{0}, m{1}, h{1});", first, d);
    body.line("const int c{1} = int(q{0} - q{0}_{1} * uint(d{1}));", first, d);
    body.line("q{0} = q{0}_{1};", first, d);
  }
  body.line("const int c{} = int(q{});", first, first);
}

void append_offsets(const GlslOperands& operands, GlslPart part, const char* number,
                    const std::vector<bool>& used, GlslBody& body) {
  const int first = part == GlslPart::along ? operands.kept_rank() : 0;
  const int last = part == GlslPart::kept ? operands.kept_rank() : operands.rank();
  for (int k = 0; k < operands.count(); ++k) {
    if (!used[static_cast<std::size_t>(k)]) continue;
    if (part == GlslPart::along && operands.one_a_row(k)) continue;
    std::string text = part == GlslPart::along ? fmt::format("k{}", k)
                       : operands.has_bias(k)  ? fmt::format("b{}", k)
                                               : "0";
    if (operands.access(k) == Access::linear) {
      const bool rows = part == GlslPart::kept && !operands.one_a_row(k);
      text += rows ? fmt::format(" + int({} * reduced)", number) : fmt::format(" + int({})", number);
    }
    for (int d = first; d < last && d < operands.strides(k); ++d)
      text += fmt::format(" + c{} * t{}_{}", d, k, d);
    body.line("const int {}{} = {};", part == GlslPart::kept ? 'k' : 'o', k, text);
  }
}

std::vector<bool> all_operands(const GlslOperands& operands) {
  return std::vector<bool>(static_cast<std::size_t>(operands.count()), true);
}

}  // namespace caldera
