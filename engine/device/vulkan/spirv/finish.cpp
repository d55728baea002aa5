#include "engine/device/vulkan/spirv/finish.h"

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>

#include "engine/device/vulkan/spirv/cooperative.h"

namespace caldera::vulkan::spirv {
namespace {

/// What the passes have to know of a module, gathered in one walk.
struct TypeFacts {
  std::set<std::uint32_t> capabilities;
  std::unordered_map<std::uint32_t, std::uint32_t> scalar_bytes;  // of a type: of its largest scalar
  std::unordered_map<std::uint32_t, std::uint32_t> pointee;       // of a pointer type to buffer memory
  std::unordered_map<std::uint32_t, std::uint32_t> small_types;   // 8- and 16-bit integers: whether signed
  std::unordered_map<std::uint32_t, std::uint32_t> pointers;      // ids in functions: their pointer type
  // Small ones that nothing but stores names: their type.
  std::unordered_map<std::uint32_t, std::uint32_t> constants;
  std::set<std::uint32_t> named;  // ids with a name or a decoration
  // Results of multiplications; of sums without such; of what has NoContraction.
  std::set<std::uint32_t> products, sums, in_order;
  struct Array {
    std::uint32_t element = 0, length = 0;
    bool has_stride = false;
    bool is_value = false;  // loaded, built or constant as a whole
  };
  std::unordered_map<std::uint32_t, Array> arrays;       // by their type
  std::unordered_map<std::uint32_t, std::uint32_t> own;  // pointer types of variables: the array's type
  bool copies_memory = false;                            // OpCopyMemory: both sides have one type
  std::uint32_t word_types[2] = {0, 0};                  // OpTypeInt 32: unsigned, signed

  std::uint32_t bytes_of(std::uint32_t type) const {
    const auto found = scalar_bytes.find(type);
    return found != scalar_bytes.end() ? found->second : 0;
  }
};

bool is_variable(std::uint32_t storage_class) {
  return storage_class == kStorageClassFunction || storage_class == kStorageClassPrivate ||
         storage_class == kStorageClassWorkgroup;
}

void note_type(const Instruction& i, TypeFacts& facts) {
  const Words w = i.words;
  switch (i.op) {
    case OpTypeInt:
      facts.scalar_bytes[w[1]] = w[2] / 8;
      if (w[2] == 32) facts.word_types[w[3] & 1U] = w[1];
      if (w[2] == 8 || w[2] == 16) facts.small_types[w[1]] = w[3];
      break;
    case OpTypeFloat:
      facts.scalar_bytes[w[1]] = w[2] / 8;
      break;
    case OpTypeArray:
      facts.arrays[w[1]].element = w[2];
      facts.arrays[w[1]].length = w[3];
      [[fallthrough]];
    case OpTypeVector:
    case OpTypeMatrix:
    case OpTypeRuntimeArray:
      facts.scalar_bytes[w[1]] = facts.bytes_of(w[2]);
      break;
    case OpTypeStruct:
      for (const std::uint32_t member : w.subspan(2))
        facts.scalar_bytes[w[1]] = std::max(facts.scalar_bytes[w[1]], facts.bytes_of(member));
      break;
    case OpTypeForwardPointer:
      if (w[2] == kStorageClassPhysicalStorageBuffer) facts.scalar_bytes[w[1]] = 8;
      break;
    case OpTypePointer:
      if (is_variable(w[2]) && facts.arrays.contains(w[3])) facts.own[w[1]] = w[3];
      if (w[2] != kStorageClassPhysicalStorageBuffer) break;
      facts.scalar_bytes[w[1]] = 8;
      facts.pointee[w[1]] = w[3];
      break;
    default:
      break;
  }
}

/// The least number of words of what note_type() and the passes read.
std::size_t shortest_to_finish(std::uint16_t op) {
  switch (op) {
    case OpTypeInt:
    case OpTypePointer:
    case OpConstant:
    case OpLoad:
    case OpTypeArray:
      return 4;
    case OpTypeFloat:
    case OpTypeVector:
    case OpTypeMatrix:
    case OpTypeRuntimeArray:
    case OpStore:
    case OpDecorate:
    case OpTypeForwardPointer:
    case OpFMul:
      return 3;
    case OpFAdd:
    case OpFSub:
      return 5;
    case OpName:
    case OpCapability:
    case OpTypeStruct:
      return 2;
    default:
      return 1;
  }
}

/// Whether the instruction's first operand is the type of what it makes, if it is a type at all.
bool makes_value(std::uint16_t op) { return (op >= OpConstantTrue && op != OpDecorate) || op == OpUndef; }

bool may_compute(const TypeFacts& facts, std::uint32_t small_type) {
  const bool byte = facts.bytes_of(small_type) == 1;
  return facts.capabilities.contains(byte ? CapabilityInt8 : CapabilityInt16);
}

constexpr std::uint16_t kFirstType = 19;  // OpTypeVoid

/// A use of a small constant elsewhere than in a store: it stays. Operands that are not known to be literals
/// count as ids.
void note_uses(const Instruction& i, TypeFacts& facts) {
  const bool is_type = i.op >= kFirstType && i.op <= OpTypeForwardPointer;
  if (facts.constants.empty() || is_type || i.op == OpStore || i.op == OpDecorate) return;
  Words operands = i.words.subspan(1);
  if (i.op == OpLoad || i.op == OpCompositeExtract || i.op == OpConstant)
    operands = operands.first(std::min<std::size_t>(operands.size(), i.op == OpConstant ? 1 : 3));
  for (const std::uint32_t word : operands) facts.constants.erase(word);
}

/// Sums that are no part of a multiplication and addition.
void note_sums(const Instruction& i, TypeFacts& facts) {
  if (i.op == OpFMul) facts.products.insert(i.words[2]);
  if (i.op != OpFAdd && i.op != OpFSub) return;
  if (!facts.products.contains(i.words[3]) && !facts.products.contains(i.words[4]))
    facts.sums.insert(i.words[2]);
}

/// Whole arrays, and pointers to arrays that are no variables: those keep their types.
void note_arrays(const Instruction& i, TypeFacts& facts) {
  facts.copies_memory |= i.op == OpCopyMemory || i.op == OpCopyMemorySized;
  if (i.words.size() < 3 || !makes_value(i.op)) return;
  if (const auto array = facts.arrays.find(i.words[1]); array != facts.arrays.end())
    array->second.is_value = true;
  if (i.op != OpVariable) facts.own.erase(i.words[1]);
}

TypeFacts type_facts_of(Words module, std::string_view kernel) {
  TypeFacts facts;
  bool in_functions = false;
  for_each_instruction(module, kernel, [&](const Instruction& i) {
    const Words w = i.words;
    if (w.size() < shortest_to_finish(i.op))
      refuse_module(kernel, static_cast<std::size_t>(w.data() - module.data()));
    in_functions |= i.op == OpFunction;
    if (i.op == OpCapability) facts.capabilities.insert(w[1]);
    if (i.op == OpName || i.op == OpDecorate) facts.named.insert(w[1]);
    if (i.op == OpDecorate && w[2] == kDecorationArrayStride) facts.arrays[w[1]].has_stride = true;
    if (i.op == OpDecorate && w[2] == kDecorationNoContraction) facts.in_order.insert(w[1]);
    note_sums(i, facts);
    note_arrays(i, facts);
    note_type(i, facts);
    note_uses(i, facts);
    if (i.op == OpConstant && facts.small_types.contains(w[1]) && !may_compute(facts, w[1]) &&
        !facts.named.contains(w[2]))
      facts.constants[w[2]] = w[1];
    // A pointer type is the first operand of an instruction in a function only where it is its result's type.
    if (in_functions && w.size() >= 3 && facts.pointee.contains(w[1])) facts.pointers[w[2]] = w[1];
  });
  if (facts.copies_memory) facts.own.clear();
  return facts;
}

/// Copies the module, mending instructions on the way.
class Mender {
 public:
  Mender(Words module, std::string_view kernel)
      : module_(module), kernel_(kernel), facts_(type_facts_of(module, kernel)) {}

  std::vector<std::uint32_t> run() {
    out_.reserve(module_.size() + 64);
    for (std::size_t w = 0; w < kHeaderWords; ++w) out_.push_back(module_[w]);
    for_each_instruction(module_, kernel_, [&](const Instruction& i) { copy(i); });
    return std::move(out_);
  }

 private:
  std::uint32_t new_id() { return out_[kBoundWord]++; }

  void copy(const Instruction& i) {
    const Words w = i.words;
    if (i.op == OpDecorate || (i.op >= kFirstType && i.op <= OpTypeForwardPointer)) add_decorations();
    if (i.op == OpLoad) {
      copy_access(w, 4, facts_.bytes_of(w[1]));
    } else if (i.op == OpStore) {
      copy_store(w);
    } else if (i.op == OpConstant && facts_.constants.contains(w[2])) {
      dropped_[w[2]] = w[3];
    } else if (facts_.own.contains(i.op == OpTypePointer ? w[1] : 0)) {
      copy_pointer_type(w);
    } else {
      if (i.op == OpFunction) add_constants();
      out_.insert(out_.end(), w.begin(), w.end());
    }
  }

  /// Ahead of the first decoration, or of what comes next.
  void add_decorations() {
    for (const std::uint32_t sum : facts_.sums) {
      if (!facts_.in_order.contains(sum)) append(out_, OpDecorate, {sum, kDecorationNoContraction});
    }
    facts_.sums.clear();
  }

  /// The literal after the mask, at least `bytes`.
  void copy_access(Words w, std::size_t mask, std::uint32_t bytes) {
    const std::size_t begin = out_.size();
    out_.insert(out_.end(), w.begin(), w.end());
    if (w.size() <= mask + 1 || (w[mask] & kMemoryAccessAligned) == 0) return;
    out_[begin + mask + 1] = std::max(w[mask + 1], bytes);
  }

  void copy_store(Words w) {
    const auto pointer = facts_.pointers.find(w[1]);
    const std::uint32_t bytes =
        pointer != facts_.pointers.end() ? facts_.bytes_of(facts_.pointee.at(pointer->second)) : 0;
    const auto wide = wide_.find(w[2]);
    std::uint32_t value = w[2];
    if (wide != wide_.end()) {
      value = new_id();
      const std::uint32_t type = facts_.constants.at(w[2]);
      append(out_, facts_.small_types.at(type) != 0 ? OpSConvert : OpUConvert, {type, value, wide->second});
    }
    const std::size_t begin = out_.size();
    copy_access(w, 3, bytes);
    out_[begin + 2] = value;
  }

  void copy_pointer_type(Words w) {
    std::uint32_t pointee = w[3];
    const TypeFacts::Array& array = facts_.arrays.at(pointee);
    if (array.has_stride && !array.is_value) {
      pointee = new_id();
      append(out_, OpTypeArray, {pointee, array.element, array.length});
    }
    append(out_, OpTypePointer, {w[1], w[2], pointee});
  }

  /// The same numbers in 32 bits, behind all types: SPIR-V extends the literals of small types to a word by
  /// their sign.
  void add_constants() {
    for (const auto& [small, value] : dropped_) {
      const std::uint32_t is_signed = facts_.small_types.at(facts_.constants.at(small)) & 1U;
      std::uint32_t& type = facts_.word_types[is_signed];
      if (type == 0) {
        type = new_id();
        append(out_, OpTypeInt, {type, 32, is_signed});
      }
      const std::uint32_t id = new_id();
      append(out_, OpConstant, {type, id, value});
      wide_[small] = id;
    }
    dropped_.clear();
  }

  Words module_;
  std::string_view kernel_;
  TypeFacts facts_;
  std::map<std::uint32_t, std::uint32_t> dropped_;         // small constants: their value
  std::unordered_map<std::uint32_t, std::uint32_t> wide_;  // small constants: their 32-bit ones
  std::vector<std::uint32_t> out_;
};

}  // namespace

std::vector<std::uint32_t> finish(Words module, std::string_view kernel) {
  return to_khr_matrices(Mender(module, kernel).run(), kernel);
}

}  // namespace caldera::vulkan::spirv
