#include "engine/device/cpu/region_program.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <unordered_map>

#include "engine/tensor/error.h"

namespace caldera::cpu {
namespace {

/// Bytes that the tile buffers of a program may take together, so that they stay in the L1 cache.
constexpr std::size_t kTileBudget = 24 * 1024;
constexpr std::int64_t kLargestTile = 1024;
constexpr std::int64_t kSmallestTile = 256;

double cost_of(ScalarOp op, DType type) {
  double cost = 0.03;  // arithmetic that is bound by loads and stores in L1
  switch (op) {
    case ScalarOp::exp:
    case ScalarOp::expm1:
    case ScalarOp::log:
    case ScalarOp::log1p:
    case ScalarOp::tanh:
    case ScalarOp::sigmoid:
    case ScalarOp::erf:
    case ScalarOp::sin:
    case ScalarOp::cos:
      cost = type == DType::f32 ? 0.25 : 6;
      break;
    case ScalarOp::tan:
    case ScalarOp::atan2:
    case ScalarOp::pow:
      cost = 10;
      break;
    case ScalarOp::floor_div:
    case ScalarOp::remainder:
      cost = 5;
      break;
    case ScalarOp::div:
    case ScalarOp::sqrt:
    case ScalarOp::rsqrt:
    case ScalarOp::reciprocal:
      cost = 0.12;
      break;
    case ScalarOp::philox_uniform:
      return 4;
    case ScalarOp::philox_normal:
      return 25;
    default:
      break;
  }
  return size_of(type) == 8 ? 2 * cost : cost;
}

class Decoder {
 public:
  explicit Decoder(const Kernel& kernel) : kernel_(kernel), code_(kernel.code) {
    program_.inputs = kernel.inputs;
    program_.used.assign(kernel.inputs.size(), false);
    program_.scalars = kernel.scalars;
    program_.indices.assign(static_cast<std::size_t>(kernel.index_count), DType::i32);
    for (const Instruction& i : code_)
      if (i.op == ScalarOp::index) program_.indices[i.a] = i.type;
  }

  RegionProgram run() {
    find_lifetimes();
    location_.assign(code_.size(), 0);
    for (std::size_t v = 0; v < code_.size(); ++v) emit(v);
    finish_outputs();
    number_locations();
    find_direct_outputs();
    for (const MicroInstruction& m : program_.code)
      for (std::uint16_t l : {m.a, m.b, m.c})
        if (l < program_.inputs.size()) program_.used[l] = true;
    if (kernel_.reduce && program_.result < program_.inputs.size()) program_.used[program_.result] = true;
    choose_tile();
    return std::move(program_);
  }

 private:
  // Until the number of temporaries is known, temporaries and outputs are numbered from these.
  static constexpr std::uint16_t kTemporary = 0x4000;
  static constexpr std::uint16_t kOutput = 0x8000;
  static constexpr std::size_t kNever = ~std::size_t{0};

  /// Operands that are value numbers (not input, scalar or index numbers).
  int value_operands(const Instruction& i) const {
    switch (i.op) {
      case ScalarOp::load:
      case ScalarOp::scalar:
      case ScalarOp::index:
        return 0;
      case ScalarOp::philox_uniform:
      case ScalarOp::philox_normal:
        return 2;
      default:
        return info(i.op).arity;
    }
  }

  void find_lifetimes() {
    last_use_.assign(code_.size(), 0);
    output_of_.assign(code_.size(), kNever);
    for (std::size_t v = 0; v < code_.size(); ++v) {
      const Instruction& i = code_[v];
      const std::uint16_t operands[] = {i.a, i.b, i.c};
      for (int k = 0; k < value_operands(i); ++k) last_use_[operands[k]] = v;
    }
    if (kernel_.reduce) {
      last_use_[kernel_.outputs.at(0).value] = kNever;
      return;
    }
    for (std::size_t o = kernel_.outputs.size(); o-- > 0;) {
      const auto& output = kernel_.outputs[o];
      last_use_[output.value] = kNever;
      // The first output that takes the value as it is gets it written in place.
      if (output.type == code_[output.value].type) output_of_[output.value] = o;
    }
  }

  std::uint16_t take_temporary() {
    if (!free_.empty()) {
      const std::uint16_t t = free_.back();
      free_.pop_back();
      return t;
    }
    return static_cast<std::uint16_t>(kTemporary + program_.temporaries++);
  }

  void release(std::size_t value, std::size_t now) {
    const std::uint16_t l = location_[value];
    if (last_use_[value] == now && l >= kTemporary && l < kOutput) free_.push_back(l);
  }

  void add(MicroFn fn, std::uint16_t out, std::uint16_t a, std::uint16_t b, std::uint16_t c) {
    program_.code.push_back({fn, out, a, b, c});
  }

  /// A source: its own location, or a converted copy where the instruction asks for another type.
  void emit_source(std::size_t v, std::uint16_t location, DType from) {
    location_[v] = location;
    if (from == code_[v].type) return;
    const std::uint16_t copy = take_temporary();
    add(require(find_cast(from, code_[v].type), v), copy, location, location, location);
    location_[v] = copy;
  }

  MicroFn require(MicroFn fn, std::size_t v) const {
    if (fn != nullptr) return fn;
    const Instruction& i = code_[v];
    const DType operand = value_operands(i) > 0 ? code_[i.op == ScalarOp::select ? i.b : i.a].type : i.type;
    throw DTypeError("kernel " + kernel_.name + ": the CPU has no " + std::string(info(i.op).name) + " of " +
                     std::string(name(operand)) + " that gives " + std::string(name(i.type)));
  }

  void emit(std::size_t v) {
    const Instruction& i = code_[v];
    switch (i.op) {
      case ScalarOp::load:
        return emit_source(v, i.a, program_.inputs.at(i.a));
      case ScalarOp::scalar:
        return emit_source(v, static_cast<std::uint16_t>(program_.first_scalar() + i.a),
                           program_.scalars.at(i.a));
      case ScalarOp::index:
        return emit_source(v, static_cast<std::uint16_t>(program_.first_index() + i.a),
                           program_.indices.at(i.a));
      default:
        break;
    }
    const int arity = value_operands(i);
    const std::uint16_t operands[] = {i.a, i.b, i.c};
    std::uint16_t at[3];
    for (int k = 0; k < 3; ++k) at[k] = location_[operands[k < arity ? k : 0]];
    const DType operand = code_[i.op == ScalarOp::select ? i.b : i.a].type;
    const MicroFn fn = require(find_micro_op(i.op, operand, i.type), v);
    // An operand's buffer may become the result's when both have elements of one size: micro-operations
    // allow that.
    const auto same_size = [&](std::size_t value) { return size_of(code_[value].type) == size_of(i.type); };
    for (int k = 0; k < arity; ++k)
      if (first_mention(operands, k) && same_size(operands[k])) release(operands[k], v);
    location_[v] =
        output_of_[v] != kNever ? static_cast<std::uint16_t>(kOutput + output_of_[v]) : take_temporary();
    for (int k = 0; k < arity; ++k)
      if (first_mention(operands, k) && !same_size(operands[k])) release(operands[k], v);
    add(fn, location_[v], at[0], at[1], at[2]);
    nanoseconds_ += cost_of(i.op, operand);
    if (last_use_[v] == 0 && location_[v] < kOutput) free_.push_back(location_[v]);  // nobody reads it
  }

  static bool first_mention(const std::uint16_t* operands, int k) {
    return std::find(operands, operands + k, operands[k]) == operands + k;
  }

  void finish_outputs() {
    for (std::size_t o = 0; o < kernel_.outputs.size(); ++o) {
      const auto& output = kernel_.outputs[o];
      program_.outputs.push_back({output.type, false});
      const DType from = code_[output.value].type;
      const MicroFn fn = require(find_cast(from, output.type), output.value);
      if (kernel_.reduce) {
        program_.result = location_[output.value];
        if (from != output.type) {
          const std::uint16_t converted = take_temporary();
          add(fn, converted, program_.result, program_.result, program_.result);
          program_.result = converted;
        }
        program_.reduce = find_reduce(*kernel_.reduce, output.type);
        continue;
      }
      const auto at = static_cast<std::uint16_t>(kOutput + o);
      const std::uint16_t value = location_[output.value];
      if (value != at) add(fn, at, value, value, value);
    }
  }

  void number_locations() {
    const auto renumber = [&](std::uint16_t& l) {
      if (l >= kOutput)
        l = static_cast<std::uint16_t>(l - kOutput + program_.first_output());
      else if (l >= kTemporary)
        l = static_cast<std::uint16_t>(l - kTemporary + program_.first_temporary());
    };
    for (MicroInstruction& m : program_.code) {
      renumber(m.out);
      renumber(m.a);
      renumber(m.b);
      renumber(m.c);
    }
    renumber(program_.result);
  }

  void find_direct_outputs() {
    bool read_later = false;
    for (std::size_t at = program_.code.size(); at-- > 0;) {
      const MicroInstruction& m = program_.code[at];
      if (m.out >= program_.first_output())
        program_.outputs[m.out - program_.first_output()].direct = !read_later;
      for (std::uint16_t l : {m.a, m.b, m.c}) read_later = read_later || l < program_.inputs.size();
    }
  }

  void choose_tile() {
    std::size_t widest = 1;
    const auto widen = [&](DType t) { widest = std::max(widest, size_of(t)); };
    for (const Instruction& i : code_) widen(i.type);
    for (DType t : program_.inputs) widen(t);
    for (const auto& o : program_.outputs) widen(o.type);
    program_.element_bytes = widest;
    const std::size_t buffers = std::max<std::size_t>(program_.locations(), 1);
    program_.tile = kLargestTile;
    while (program_.tile > kSmallestTile &&
           buffers * widest * static_cast<std::size_t>(program_.tile) > kTileBudget)
      program_.tile /= 2;
    // Every operand crosses the memory bus once, at some 40 GB/s: L2 more, DRAM less.
    std::size_t moved = 0;
    for (DType t : program_.inputs) moved += size_of(t);
    for (const auto& o : program_.outputs) moved += size_of(o.type);
    program_.nanoseconds_per_element = nanoseconds_ + 0.025 * static_cast<double>(moved);
  }

  const Kernel& kernel_;
  const std::vector<Instruction>& code_;
  RegionProgram program_;
  std::vector<std::uint16_t> location_;  // of each value
  std::vector<std::size_t> last_use_;    // of each value: position of the last reader; kNever: to the end
  std::vector<std::size_t> output_of_;   // of each value: the output it is written into
  std::vector<std::uint16_t> free_;
  double nanoseconds_ = 0;
};

}  // namespace

RegionProgram decode(const Kernel& kernel) { return Decoder(kernel).run(); }

std::shared_ptr<const RegionProgram> decode_cached(const Kernel& kernel, std::uint64_t& compiled) {
  static std::mutex mutex;
  static std::unordered_map<Hash128, std::shared_ptr<const RegionProgram>> cache;
  const std::lock_guard lock(mutex);
  auto& entry = cache[kernel.hash];
  if (entry == nullptr) {
    entry = std::make_shared<const RegionProgram>(decode(kernel));
    ++compiled;
  }
  return entry;
}

}  // namespace caldera::cpu
