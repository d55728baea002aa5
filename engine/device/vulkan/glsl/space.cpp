#include "engine/device/vulkan/glsl/space.h"

namespace caldera {

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
    body.line("const int c{} = int(q{} % uint(d{}));", d, first, d);
    body.line("q{} /= uint(d{});", first, d);
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
