// The instructions of a kernel as statements: value v becomes the register `v<v>`.
#pragma once

#include <string>
#include <vector>

#include "engine/device/vulkan/glsl/neighbours.h"

namespace caldera {

class GlslEvaluator {
 public:
  GlslEvaluator(const Kernel& kernel, const GlslOperands& operands, GlslBody& body,
                const GlslNeighbours* neighbours = nullptr);

  /// Whether the value is the same all over the space: a scalar argument, or an element that every point
  /// reads.
  bool same_everywhere(std::size_t v) const;
  /// Declares all such values that something uses.
  void hoist();

  /// The values that `roots` need, themselves included, but for what is the same everywhere.
  std::vector<bool> needed(const std::vector<std::uint16_t>& roots) const;
  /// Declares the `wanted` values at the point whose element numbers are o<k> and whose row's are k<k>.
  void evaluate(const std::vector<bool>& wanted);
  /// Declares those of the `wanted` values that are one load for all neighbouring points, and takes them out.
  void evaluate_once(std::vector<bool>& wanted);
  /// The operands whose element numbers evaluate() reads, by point (o<k>).
  std::vector<bool> operands_of(const std::vector<bool>& wanted) const;

  GlslValue value(std::uint16_t v) const { return {fmt::format("v{}", v), kernel_.code[v].type}; }
  /// Stores `value` as the element number `offset` of the output; where it is together, as that of the
  /// neighbours' point.
  void store(int output, const GlslValue& value, const std::string& offset);

 private:
  std::string text_of(const Instruction& i);
  std::string load(int operand, const std::string& offset, DType to);
  std::string scalar(int number, DType to);
  std::string random(const Instruction& i);

  const Kernel& kernel_;
  const GlslOperands& operands_;
  GlslBody& body_;
  const GlslNeighbours* const neighbours_;
};

/// The operands of an instruction that are values.
std::vector<std::uint16_t> value_operands(const Kernel& kernel, const Instruction& i);

}  // namespace caldera
