#include "engine/device/vulkan/spirv/facts.h"

#include <unordered_map>
#include <utility>
#include <vector>

namespace caldera::vulkan::spirv {
namespace {

using Ids = std::vector<std::uint32_t>;

/// Operations of OpSpecConstantOp that sizes are worked out by (SPIR-V specification, section 3.3).
std::int64_t computed(std::uint32_t op, std::int64_t a, std::int64_t b, std::int64_t c) {
  const auto shift = static_cast<unsigned>(b) & 31U;
  switch (op) {
    case 113:  // UConvert, SConvert, Bitcast
    case 114:
    case 124:
      return a;
    case 128:  // IAdd
      return a + b;
    case 130:  // ISub
      return a - b;
    case 132:  // IMul
      return a * b;
    case 134:  // UDiv, SDiv
    case 135:
      return b != 0 ? a / b : 0;
    case 137:  // UMod, SRem, SMod
    case 138:
    case 139:
      return b != 0 ? a % b : 0;
    case 166:  // LogicalOr
      return static_cast<std::int64_t>(a != 0 || b != 0);
    case 167:  // LogicalAnd
      return static_cast<std::int64_t>(a != 0 && b != 0);
    case 168:  // LogicalNot
      return static_cast<std::int64_t>(a == 0);
    case 169:  // Select
      return a != 0 ? b : c;
    case 170:  // IEqual
      return static_cast<std::int64_t>(a == b);
    case 171:  // INotEqual
      return static_cast<std::int64_t>(a != b);
    case 172:  // UGreaterThan, SGreaterThan
    case 173:
      return static_cast<std::int64_t>(a > b);
    case 174:  // UGreaterThanEqual, SGreaterThanEqual
    case 175:
      return static_cast<std::int64_t>(a >= b);
    case 176:  // ULessThan, SLessThan
    case 177:
      return static_cast<std::int64_t>(a < b);
    case 178:  // ULessThanEqual, SLessThanEqual
    case 179:
      return static_cast<std::int64_t>(a <= b);
    case 194:  // ShiftRightLogical, ShiftRightArithmetic
    case 195:
      return a >> shift;
    case 196:  // ShiftLeftLogical
      return a << shift;
    case 197:  // BitwiseOr
      return a | b;
    case 199:  // BitwiseAnd
      return a & b;
    default:
      return 0;
  }
}

/// The numbers and types that a module names, in the order of its instructions: each is known before it is
/// used.
class Names {
 public:
  explicit Names(std::span<const std::int32_t> given) : given_(given) {}

  void note(const Instruction& i) {
    note_type(i);
    note_constant(i);
  }
  /// 0 for what is no number, or is not followed.
  std::int64_t value(std::uint32_t id) const { return found(values_, id); }
  std::int64_t bytes_behind(std::uint32_t pointer_type) const { return found(pointees_, pointer_type); }
  const Ids* composite(std::uint32_t id) const {
    const auto at = composites_.find(id);
    return at != composites_.end() ? &at->second : nullptr;
  }

 private:
  using Numbers = std::unordered_map<std::uint32_t, std::int64_t>;
  static std::int64_t found(const Numbers& numbers, std::uint32_t id) {
    const auto at = numbers.find(id);
    return at != numbers.end() ? at->second : 0;
  }

  void note_type(const Instruction& i) {
    const auto operand = [&](std::size_t k) { return k < i.words.size() ? i.words[k] : 0; };
    switch (i.op) {
      case OpTypeBool:
        bytes_[operand(1)] = 4;
        break;
      case OpTypeInt:
      case OpTypeFloat:
        bytes_[operand(1)] = operand(2) / 8;
        break;
      case OpTypeVector:
        bytes_[operand(1)] = found(bytes_, operand(2)) * operand(3);
        break;
      case OpTypeArray:
        bytes_[operand(1)] = found(bytes_, operand(2)) * value(operand(3));
        break;
      case OpTypeStruct:
        for (std::size_t k = 2; k < i.words.size(); ++k) bytes_[i.words[1]] += found(bytes_, i.words[k]);
        break;
      case OpTypePointer:
        pointees_[operand(1)] = found(bytes_, operand(3));
        break;
      default:
        break;
    }
  }

  void note_constant(const Instruction& i) {
    const auto operand = [&](std::size_t k) { return k < i.words.size() ? i.words[k] : 0; };
    const auto given = [&](std::int64_t otherwise) {
      const auto spec = spec_ids_.find(operand(2));
      return spec != spec_ids_.end() && spec->second < given_.size() ? given_[spec->second] : otherwise;
    };
    switch (i.op) {
      case OpDecorate:
        if (operand(2) == kDecorationSpecId) spec_ids_[operand(1)] = operand(3);
        break;
      case OpConstantTrue:
      case OpConstantFalse:
        values_[operand(2)] = static_cast<std::int64_t>(i.op == OpConstantTrue);
        break;
      case OpConstant:
      case OpSpecConstant:
        values_[operand(2)] = given(static_cast<std::int32_t>(operand(3)));
        break;
      case OpSpecConstantOp:
        values_[operand(2)] =
            operand(3) == OpCompositeExtract
                ? extracted(operand(4), operand(5))
                : computed(operand(3), value(operand(4)), value(operand(5)), value(operand(6)));
        break;
      case OpConstantComposite:
      case OpSpecConstantComposite:
        composites_[operand(2)].assign(i.words.begin() + 3, i.words.end());
        break;
      default:
        break;
    }
  }

  std::int64_t extracted(std::uint32_t id, std::size_t member) const {
    const Ids* const members = composite(id);
    return members != nullptr && member < members->size() ? value((*members)[member]) : 0;
  }

  std::span<const std::int32_t> given_;
  std::unordered_map<std::uint32_t, std::uint32_t> spec_ids_;  // of results
  Numbers values_;
  Numbers bytes_;     // of types
  Numbers pointees_;  // bytes of what pointers of a type point to
  std::unordered_map<std::uint32_t, Ids> composites_;
};

}  // namespace

ModuleFacts facts_of(Words module, std::span<const std::int32_t> constants, std::string_view kernel) {
  ModuleFacts facts;
  Names names(constants);
  std::uint32_t size_of_group = 0;  // the constant that is gl_WorkGroupSize: it goes before all else
  Ids size_ids;                     // of LocalSizeId
  for_each_instruction(module, kernel, [&](const Instruction& i) {
    names.note(i);
    const auto operand = [&](std::size_t k) { return k < i.words.size() ? i.words[k] : 0; };
    if (i.op == OpCapability && operand(1) == CapabilityCooperativeMatrixKHR) facts.uses_matrices = true;
    if (i.op == OpDecorate && operand(2) == kDecorationBuiltIn && operand(3) == kBuiltInWorkgroupSize)
      size_of_group = operand(1);
    if (i.op == OpExecutionMode && operand(2) == kExecutionModeLocalSize)
      facts.workgroup_size = std::int64_t{operand(3)} * operand(4) * operand(5);
    if (i.op == OpExecutionModeId && operand(2) == kExecutionModeLocalSizeId)
      size_ids = {operand(3), operand(4), operand(5)};
    if (i.op == OpVariable && operand(3) == kStorageClassWorkgroup)
      facts.shared_bytes += names.bytes_behind(operand(1));
  });
  if (const Ids* const built_in = names.composite(size_of_group)) size_ids = *built_in;
  if (!size_ids.empty()) {
    facts.workgroup_size = 1;
    for (const std::uint32_t id : size_ids) facts.workgroup_size *= names.value(id);
  }
  return facts;
}

}  // namespace caldera::vulkan::spirv
