#include "engine/device/vulkan/spirv/cooperative.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <unordered_map>

#include "engine/base/error.h"

namespace caldera::vulkan::spirv {
namespace {

constexpr std::string_view kNvExtension = "SPV_NV_cooperative_matrix";
constexpr std::string_view kKhrExtension = "SPV_KHR_cooperative_matrix";
constexpr std::string_view kBfloat16Extension = "SPV_KHR_bfloat16";
/// Of the elements of A and B that stand for bf16 in NV's matrices.
constexpr std::uint32_t kStandInBits = 32;

/// Cooperative Matrix Use, of section 3 of SPV_KHR_cooperative_matrix.
enum Use : std::uint32_t { UseA = 0, UseB = 1, UseAccumulator = 2 };
/// Cooperative Matrix Layout.
enum Layout : std::uint32_t { RowMajor = 0, ColumnMajor = 1 };

/// What one walk over the module finds out.
struct MatrixFacts {
  std::unordered_map<std::uint32_t, std::optional<Use>> uses;   // of matrix types
  std::unordered_map<std::uint32_t, std::uint32_t> matrices;    // values: their type
  std::unordered_map<std::uint32_t, bool> booleans;             // constants
  std::unordered_map<std::uint32_t, std::uint32_t> integers;    // constants: their type
  std::unordered_map<std::uint32_t, std::uint32_t> components;  // of matrix types
  std::uint32_t stand_in = 0;                                   // OpTypeFloat of kStandInBits

  bool is_bfloat16(std::uint32_t matrix_type) const {
    const std::optional<Use>& use = uses.at(matrix_type);
    return use && *use != UseAccumulator && stand_in != 0 && components.at(matrix_type) == stand_in;
  }
  bool has_bfloat16() const {
    return std::ranges::any_of(uses, [&](const auto& type) { return is_bfloat16(type.first); });
  }
};

std::size_t shortest_with_matrices(std::uint16_t op) {
  switch (op) {
    case OpCapability:
      return 2;
    case OpTypeFloat:
    case OpConstantTrue:
    case OpConstantFalse:
      return 3;
    case OpConstant:
      return 4;
    case OpCooperativeMatrixStoreNV:
      return 5;
    case OpTypeCooperativeMatrixNV:
    case OpCooperativeMatrixLoadNV:
    case OpCooperativeMatrixMulAddNV:
      return 6;
    default:
      return 1;
  }
}

void note_use(MatrixFacts& facts, std::uint32_t value, Use use, std::string_view kernel) {
  const auto type = facts.matrices.find(value);
  if (type == facts.matrices.end()) return;
  std::optional<Use>& known = facts.uses[type->second];
  if (known && *known != use)
    throw DeviceError(
        fmt::format("kernel {}: one type of matrices is two of A, B and C of a product", kernel));
  known = use;
}

MatrixFacts matrix_facts_of(Words module, std::string_view kernel) {
  MatrixFacts facts;
  for_each_instruction(module, kernel, [&](const Instruction& i) {
    const Words w = i.words;
    if (w.size() < shortest_with_matrices(i.op))
      refuse_module(kernel, static_cast<std::size_t>(w.data() - module.data()));
    if (i.op == OpTypeCooperativeMatrixNV) {
      facts.uses.try_emplace(w[1]);
      facts.components[w[1]] = w[2];
    }
    if (i.op == OpTypeFloat && w[2] == kStandInBits) facts.stand_in = w[1];
    if (i.op == OpConstantTrue || i.op == OpConstantFalse) facts.booleans[w[2]] = i.op == OpConstantTrue;
    if (i.op == OpConstant) facts.integers[w[2]] = w[1];
    if (w.size() >= 3 && i.op >= OpConstantTrue && facts.uses.contains(w[1])) facts.matrices[w[2]] = w[1];
  });
  // Products may stand ahead of what makes their operands, in another function.
  for_each_instruction(module, kernel, [&](const Instruction& i) {
    if (i.op != OpCooperativeMatrixMulAddNV) return;
    note_use(facts, i.words[3], UseA, kernel);
    note_use(facts, i.words[4], UseB, kernel);
    note_use(facts, i.words[5], UseAccumulator, kernel);
  });
  return facts;
}

class Rewriter {
 public:
  Rewriter(Words module, std::string_view kernel)
      : module_(module),
        kernel_(kernel),
        facts_(matrix_facts_of(module, kernel)),
        has_bfloat16_(facts_.has_bfloat16()) {}

  std::vector<std::uint32_t> run() {
    for (std::size_t w = 0; w < kHeaderWords; ++w) out_.push_back(module_[w]);
    for_each_instruction(module_, kernel_, [&](const Instruction& i) { rewrite(i.op, i.words); });
    return std::move(out_);
  }

 private:
  void copy(Words w, std::optional<Op> op = std::nullopt) {
    const std::size_t begin = out_.size();
    out_.insert(out_.end(), w.begin(), w.end());
    if (op) out_[begin] = static_cast<std::uint32_t>(w.size()) << 16 | *op;
  }

  void rewrite(std::uint16_t op, Words w) {
    switch (op) {
      case OpCapability:
        copy_capability(w[1]);
        break;
      case OpExtension:
        copy_extension(w);
        break;
      case OpTypeCooperativeMatrixNV:
        copy_type(w);
        break;
      case OpCooperativeMatrixLoadNV:
        // type, result, pointer, stride, column major, memory operands
        begin_access(OpCooperativeMatrixLoadKHR, w);
        out_.insert(out_.end(), {w[1], w[2], w[3], layout(w[5]), w[4]});
        out_.insert(out_.end(), w.begin() + 6, w.end());
        break;
      case OpCooperativeMatrixStoreNV:
        begin_access(OpCooperativeMatrixStoreKHR, w);
        out_.insert(out_.end(), {w[1], w[2], layout(w[4]), w[3]});
        out_.insert(out_.end(), w.begin() + 5, w.end());
        break;
      case OpCooperativeMatrixMulAddNV:
        copy(w, OpCooperativeMatrixMulAddKHR);
        break;
      case OpCooperativeMatrixLengthNV:
        copy(w, OpCooperativeMatrixLengthKHR);
        break;
      case OpSpecConstantOp:
        copy(w);
        // Of a matrix's length, which is a constant.
        if (w.size() > 3 && w[3] == OpCooperativeMatrixLengthNV)
          out_[out_.size() - w.size() + 3] = OpCooperativeMatrixLengthKHR;
        break;
      default:
        copy(w);
    }
  }

  void begin_access(Op op, Words w) { out_.push_back(static_cast<std::uint32_t>(w.size()) << 16 | op); }

  void copy_capability(std::uint32_t capability) {
    if (capability != CapabilityCooperativeMatrixNV) return append(out_, OpCapability, {capability});
    append(out_, OpCapability, {CapabilityCooperativeMatrixKHR});
    if (!has_bfloat16_) return;
    append(out_, OpCapability, {CapabilityBFloat16TypeKHR});
    append(out_, OpCapability, {CapabilityBFloat16CooperativeMatrixKHR});
  }

  void append_extension(std::string_view name) {
    std::vector<std::uint32_t> words(name.size() / 4 + 1);
    std::memcpy(words.data(), name.data(), name.size());
    out_.push_back(static_cast<std::uint32_t>(words.size() + 1) << 16 | OpExtension);
    out_.insert(out_.end(), words.begin(), words.end());
  }

  void copy_extension(Words w) {
    // Strings end in a zero byte within the instruction's words.
    const auto* const text = reinterpret_cast<const char*>(w.data() + 1);
    if (std::string_view(text, ::strnlen(text, 4 * (w.size() - 1))) != kNvExtension) return copy(w);
    append_extension(kKhrExtension);
    if (has_bfloat16_) append_extension(kBfloat16Extension);
  }

  /// result, component, scope, rows, columns; and the use. The numbers that KHR wants as constants have the
  /// type of the scope's, which stands ahead of every matrix type.
  void copy_type(Words w) {
    const std::optional<Use> use = facts_.uses.at(w[1]);
    const auto scope = facts_.integers.find(w[3]);
    if (!use) throw DeviceError(fmt::format("kernel {}: a type of matrices that no product uses", kernel_));
    if (scope == facts_.integers.end())
      throw DeviceError(fmt::format("kernel {}: the scope of a matrix is no constant", kernel_));
    if (numbers_[0] == 0) {
      for (std::uint32_t value = 0; value < 3; ++value) {
        numbers_[value] = out_[kBoundWord]++;
        append(out_, OpConstant, {scope->second, numbers_[value], value});
      }
    }
    std::uint32_t component = w[2];
    if (facts_.is_bfloat16(w[1])) {
      if (bfloat16_ == 0) {
        bfloat16_ = out_[kBoundWord]++;
        append(out_, OpTypeFloat, {bfloat16_, 16, kEncodingBFloat16KHR});
      }
      component = bfloat16_;
    }
    append(out_, OpTypeCooperativeMatrixKHR, {w[1], component, w[3], w[4], w[5], numbers_[*use]});
  }

  std::uint32_t layout(std::uint32_t column_major) const {
    const auto known = facts_.booleans.find(column_major);
    if (known == facts_.booleans.end())
      throw DeviceError(fmt::format("kernel {}: the layout of a matrix is no constant", kernel_));
    return numbers_[known->second ? ColumnMajor : RowMajor];
  }

  Words module_;
  std::string_view kernel_;
  MatrixFacts facts_;
  bool has_bfloat16_;
  std::uint32_t numbers_[3] = {0, 0, 0};  // ids of the constants 0, 1 and 2
  std::uint32_t bfloat16_ = 0;            // id of the type
  std::vector<std::uint32_t> out_;
};

}  // namespace

std::vector<std::uint32_t> to_khr_matrices(std::vector<std::uint32_t> module, std::string_view kernel) {
  bool has_matrices = false;
  for_each_instruction(module, kernel, [&](const Instruction& i) {
    has_matrices |=
        i.op == OpCapability && i.words.size() >= 2 && i.words[1] == CapabilityCooperativeMatrixNV;
  });
  return has_matrices ? Rewriter(module, kernel).run() : std::move(module);
}

}  // namespace caldera::vulkan::spirv
