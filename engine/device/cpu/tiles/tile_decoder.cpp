#include "engine/device/cpu/tiles/tile_decoder.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "engine/base/error.h"
#include "engine/device/cpu/tiles/tile_locations.h"
#include "engine/device/cpu/tiles/tile_values.h"

namespace caldera::cpu {
namespace {

constexpr std::size_t kNone = ~std::size_t{0};

/// The comparison that says the same with its operands exchanged.
ScalarOp exchanged(ScalarOp op) {
  switch (op) {
    case ScalarOp::less:
      return ScalarOp::greater;
    case ScalarOp::less_equal:
      return ScalarOp::greater_equal;
    case ScalarOp::greater:
      return ScalarOp::less;
    case ScalarOp::greater_equal:
      return ScalarOp::less_equal;
    default:
      return op;
  }
}

std::vector<DType> index_types(const Kernel& kernel) {
  std::vector<DType> types(static_cast<std::size_t>(kernel.index_count), DType::i32);
  for (const Instruction& i : kernel.code)
    if (i.op == ScalarOp::index) types[i.a] = i.type;
  return types;
}

class Decoder {
 public:
  Decoder(const Kernel& kernel, const TileForm& form)
      : kernel_(kernel),
        code_(kernel.code),
        form_(form),
        values_(kernel, form, index_types(kernel)),
        location_(code_.size(), 0) {
    program_.inputs = kernel.inputs;
    program_.scalars = kernel.scalars;
    program_.expanded_scalars.assign(kernel.scalars.size(), false);
    program_.indices = index_types(kernel);
    program_.passes.resize(static_cast<std::size_t>(values_.passes()));
  }

  TileProgram run() {
    list_outputs();
    emit_row_code(0, program_.first_row_code);
    for (int p = 0; p < values_.passes(); ++p) emit_pass(p);
    number_locations(program_);
    find_direct_outputs(program_);
    find_operands();
    choose_tile(program_, kernel_);
    program_.machine = std::make_shared<MachineCode>();
    return std::move(program_);
  }

 private:
  bool combines_rows() const { return kernel_.reduce && form_.reduces_rows; }
  bool only_evaluates() const { return kernel_.reduce && !form_.reduces_rows; }

  void list_outputs() {
    output_of_.assign(code_.size(), kNone);
    for (std::size_t o = 0; o < kernel_.outputs.size(); ++o)
      program_.outputs.push_back({kernel_.outputs[o].type, values_.per_row(o), 0, false});
    if (kernel_.reduce) return;
    for (std::size_t o = kernel_.outputs.size(); o-- > 0;) {
      // The first output that takes the value as it is gets it written in place.
      const Kernel::Output& output = kernel_.outputs[o];
      if (!program_.outputs[o].per_row && output.type == code_[output.value].type)
        output_of_[output.value] = o;
    }
  }

  std::uint16_t source_location(const Instruction& i) const {
    const std::size_t first = i.op == ScalarOp::scalar  ? program_.first_scalar()
                              : i.op == ScalarOp::index ? program_.first_index()
                                                        : 0;
    return static_cast<std::uint16_t>(first + i.a);
  }
  std::uint16_t location(std::size_t v) const {
    return values_.in_place(v) ? source_location(code_[v]) : location_[v];
  }

  MicroFn require(MicroFn fn, std::size_t v) const {
    if (fn != nullptr) return fn;
    const Instruction& i = code_[v];
    const DType operand = value_operands(i) > 0 ? code_[i.op == ScalarOp::select ? i.b : i.a].type : i.type;
    throw DTypeError("kernel " + kernel_.name + ": the CPU has no " + std::string(info(i.op).name) + " of " +
                     std::string(name(operand)) + " that gives " + std::string(name(i.type)));
  }

  // ---- Locations

  std::uint16_t take(std::vector<std::uint16_t>& free, std::uint16_t first, int& count) {
    if (free.empty()) return static_cast<std::uint16_t>(first + count++);
    const std::uint16_t l = free.back();
    free.pop_back();
    return l;
  }
  std::uint16_t take_temporary() { return take(free_, kTemporary, program_.temporaries); }
  std::uint16_t take_for(std::size_t v, int pass) {
    if (pass == values_.passes() - 1 && output_of_[v] != kNone)
      return static_cast<std::uint16_t>(kOutput + output_of_[v]);
    return values_.is_kept(v, pass) ? take(free_kept_, kKept, program_.kept) : take_temporary();
  }
  std::uint16_t take_row() { return static_cast<std::uint16_t>(kRow + program_.row_temporaries++); }

  void release(std::uint16_t l) {
    if (l >= kKept && l < kTemporary) free_kept_.push_back(l);
    if (l >= kTemporary && l < kRow) free_.push_back(l);
  }

  // ---- Values of rows

  struct Types {
    ScalarOp op;
    DType type, operand;
  };
  static Types cast_types(DType from, DType to) { return {ScalarOp::cast, to, from}; }

  void add(MicroFn fn, Types types, std::uint16_t out, std::uint16_t a, std::uint16_t b, std::uint16_t c) {
    MicroInstruction m;
    m.op = types.op;
    m.type = types.type;
    m.operand = types.operand;
    m.fn = fn;
    m.out = out;
    m.a = a;
    m.b = b;
    m.c = c;
    program_.code.push_back(m);
  }

  /// The uniform values of one phase but the row reductions themselves.
  void emit_row_code(int phase, TileProgram::Range& range) {
    range.begin = position();
    for (std::size_t v = 0; v < code_.size(); ++v) {
      const Instruction& i = code_[v];
      if (!values_.needed(v) || !values_.uniform(v) || values_.phase(v) != phase || values_.in_place(v) ||
          is_row_reduction(i.op))
        continue;
      location_[v] = take_row();
      if (is_source(i.op)) {
        const std::uint16_t from = source_location(i);
        add(require(find_cast(values_.source_type(i), i.type), v), cast_types(values_.source_type(i), i.type),
            location_[v], from, from, from);
        continue;
      }
      std::uint16_t at[3];
      for (std::size_t k = 0; k < 3; ++k)
        at[k] = location(operands_of(i)[static_cast<int>(k) < value_operands(i) ? k : 0]);
      const DType operand = code_[i.op == ScalarOp::select ? i.b : i.a].type;
      add(require(find_micro_op(i.op, operand, i.type), v), {i.op, i.type, operand}, location_[v], at[0],
          at[1], at[2]);
    }
    if (phase == values_.passes()) emit_row_outputs();
    range.end = position();
  }

  /// Outputs that are one a row are in temporaries of their own when they are stored: in no operand, whose
  /// memory another output may be.
  void emit_row_outputs() {
    for (std::size_t o = 0; o < kernel_.outputs.size(); ++o) {
      TileProgram::Output& output = program_.outputs[o];
      if (!output.per_row) continue;
      if (kernel_.reduce) {
        if (program_.narrow == nullptr) continue;
        const std::uint16_t combined = output.location;
        output.location = take_row();
        add(program_.narrow, cast_types(compute_type(output.type), output.type), output.location, combined,
            combined, combined);
        continue;
      }
      const std::size_t value = kernel_.outputs[o].value;
      output.location = location(value);
      const DType from = code_[value].type;
      if (from == output.type && output.location >= kRow) continue;
      const std::uint16_t copy = take_row();
      add(require(find_cast(from, output.type), value), cast_types(from, output.type), copy, output.location,
          output.location, output.location);
      output.location = copy;
    }
  }

  // ---- Values of points

  void emit_pass(int p) {
    TileProgram::Pass& pass = program_.passes[static_cast<std::size_t>(p)];
    expansions_.clear();
    last_use_.assign(code_.size(), 0);
    const std::vector<std::size_t> values = values_.values_of(p);
    for (std::size_t v : values) {
      const auto operands = operands_of(code_[v]);
      for (int k = 0; k < value_operands(code_[v]); ++k) last_use_[operands[static_cast<std::size_t>(k)]] = v;
    }
    const std::vector<std::size_t> roots = values_.roots_of(p);
    for (std::size_t v : roots) last_use_[v] = kNone;

    pass.code.begin = position();
    for (std::size_t v : values) emit(v, p);
    std::vector<std::uint16_t> converted;
    if (p == values_.passes() - 1) emit_outputs(converted);
    pass.reductions.begin = static_cast<std::uint32_t>(program_.reductions.size());
    add_reductions(p);
    pass.reductions.end = static_cast<std::uint32_t>(program_.reductions.size());
    pass.code.end = position();

    for (std::size_t k = 0; k < roots.size(); ++k) {
      const std::size_t v = roots[k];
      if (std::find(roots.begin(), roots.begin() + static_cast<std::ptrdiff_t>(k), v) !=
          roots.begin() + static_cast<std::ptrdiff_t>(k))
        continue;
      if (!values_.uniform(v) && !values_.in_place(v) && !values_.is_kept(v, p)) release(location_[v]);
    }
    for (const auto& [value, at] : expansions_) release(at);
    for (std::uint16_t l : converted) release(l);
    emit_row_code(p + 1, pass.row_code);
  }

  void add_reductions(int p) {
    for (std::size_t v = 0; v < code_.size(); ++v) {
      const Instruction& i = code_[v];
      if (!values_.needed(v) || !is_row_reduction(i.op) || values_.phase(i.a) != p) continue;
      const ReduceOps* ops = find_reduce(combine_of(i.op), i.type);
      if (ops == nullptr || code_[i.a].type != i.type) require(nullptr, v);
      location_[v] = take_row();
      program_.reductions.push_back({ops, point_location(i.a), location_[v], combine_of(i.op), i.type});
    }
    if (!combines_rows()) return;
    TileProgram::Output& output = program_.outputs[0];
    output.location = take_row();
    program_.reductions.push_back({program_.reduce, program_.result, output.location, *kernel_.reduce,
                                   compute_type(kernel_.outputs[0].type)});
  }

  /// Where a value is one a point, expanded if it is uniform.
  std::uint16_t point_location(std::size_t v) {
    if (!values_.uniform(v)) return location(v);
    if (code_[v].op == ScalarOp::scalar && values_.in_place(v)) {
      program_.expanded_scalars[code_[v].a] = true;
      return location(v);
    }
    for (const auto& [value, at] : expansions_)
      if (value == v) return at;
    const std::uint16_t at = take_temporary();
    add_expansion(at, v);
    expansions_.emplace_back(v, at);
    return at;
  }

  void add_expansion(std::uint16_t out, std::size_t v) {
    const auto size = static_cast<std::uint8_t>(size_of(code_[v].type));
    add(find_fill(size), cast_types(code_[v].type, code_[v].type), out, location(v), location(v),
        location(v));
    MicroInstruction& m = program_.code.back();
    m.by_row = true;
    m.spread = find_spread(size);
  }

  static bool first_mention(const std::uint16_t* operands, int k) {
    return std::find(operands, operands + k, operands[k]) == operands + k;
  }

  void emit(std::size_t v, int p) {
    const Instruction& i = code_[v];
    if (is_source(i.op)) {  // of another type
      const std::uint16_t from = source_location(i);
      location_[v] = take_for(v, p);
      add(require(find_cast(values_.source_type(i), i.type), v), cast_types(values_.source_type(i), i.type),
          location_[v], from, from, from);
      return;
    }
    const int arity = value_operands(i);
    std::uint16_t operands[] = {i.a, i.b, i.c};
    ScalarOp op = i.op;
    unsigned uniform = 0;
    for (int k = 0; k < arity; ++k) uniform |= values_.uniform(operands[k]) ? 1U << k : 0U;
    const DType operand = code_[op == ScalarOp::select ? i.b : i.a].type;
    if (arity == 2 && uniform == 1 && info(op).gives_boolean && exchanged(op) != op) {
      op = exchanged(op);
      std::swap(operands[0], operands[1]);
      uniform = 2;
    }
    bool all_scalars = true;
    for (int k = 0; k < arity; ++k)
      if ((uniform >> k & 1U) != 0)
        all_scalars =
            all_scalars && code_[operands[k]].op == ScalarOp::scalar && values_.in_place(operands[k]);
    MicroFn fn = nullptr;
    if (uniform != 0 && (all_scalars || !form_.expand)) fn = find_micro_op(op, operand, i.type, uniform);
    const bool single = fn != nullptr;
    if (!single) fn = require(find_micro_op(op, operand, i.type), v);

    std::uint16_t at[3];
    for (int k = 0; k < 3; ++k) {
      const std::size_t o = operands[k < arity ? k : 0];
      at[k] = single ? location(o) : point_location(o);
    }
    // An operand's buffer may become the result's when both have elements of one size: micro-operations
    // allow that.
    const auto ends = [&](int k, bool same_size) {
      const std::size_t o = operands[k];
      return first_mention(operands, k) && !values_.uniform(o) && !values_.in_place(o) && last_use_[o] == v &&
             !values_.is_kept(o, p) && (size_of(code_[o].type) == size_of(i.type)) == same_size;
    };
    for (int k = 0; k < arity; ++k)
      if (ends(k, true)) release(location_[operands[k]]);
    location_[v] = take_for(v, p);
    for (int k = 0; k < arity; ++k)
      if (ends(k, false)) release(location_[operands[k]]);
    add(fn, {op, i.type, operand}, location_[v], at[0], at[1], at[2]);
    if (!single || all_scalars) return;
    MicroInstruction& m = program_.code.back();
    m.by_row = true;
    m.points = 1;
    m.size[0] = static_cast<std::uint8_t>(size_of(i.type));
    for (int k = 0; k < 3; ++k) {
      const std::size_t o = operands[k < arity ? k : 0];
      m.size[k + 1] = static_cast<std::uint8_t>(size_of(code_[o].type));
      if (!values_.uniform(o)) m.points |= static_cast<std::uint8_t>(2U << k);
    }
  }

  void emit_outputs(std::vector<std::uint16_t>& converted) {
    for (std::size_t o = 0; o < kernel_.outputs.size(); ++o) {
      const Kernel::Output& output = kernel_.outputs[o];
      const std::size_t v = output.value;
      const DType from = code_[v].type;
      const DType type = kernel_.reduce ? compute_type(output.type) : output.type;
      const MicroFn fn = require(find_cast(from, type), v);
      if (kernel_.reduce) {
        program_.reduce = find_reduce(*kernel_.reduce, type);
        if (type != output.type) program_.narrow = require(find_cast(type, output.type), v);
        program_.result = point_location(v);
        if (from == type) continue;
        converted.push_back(take_temporary());
        add(fn, cast_types(from, type), converted.back(), program_.result, program_.result, program_.result);
        program_.result = converted.back();
        continue;
      }
      if (program_.outputs[o].per_row) continue;
      const auto at = static_cast<std::uint16_t>(kOutput + o);
      program_.outputs[o].location = at;
      if (values_.uniform(v) && from == output.type) {
        add_expansion(at, v);
      } else if (values_.uniform(v) || values_.in_place(v) || location_[v] != at) {
        const std::uint16_t value = point_location(v);
        add(fn, cast_types(from, type), at, value, value, value);
      }
    }
  }

  std::uint32_t position() const { return static_cast<std::uint32_t>(program_.code.size()); }

  void find_operands() {
    std::vector<bool> row_inputs(program_.inputs.size(), false);
    std::vector<bool> row_indices(program_.indices.size(), false);
    for (std::size_t v = 0; v < code_.size(); ++v) {
      if (!values_.needed(v) || !values_.uniform(v)) continue;
      if (code_[v].op == ScalarOp::load || code_[v].op == ScalarOp::load_row) row_inputs[code_[v].a] = true;
      if (code_[v].op == ScalarOp::index) row_indices[code_[v].a] = true;
    }
    list_operands(program_, row_inputs, row_indices, only_evaluates());
  }

  const Kernel& kernel_;
  const std::vector<Instruction>& code_;
  const TileForm& form_;
  const TileValues values_;
  TileProgram program_;
  // Of each value:
  std::vector<std::size_t> last_use_;    // position of its last reader in the pass at hand; kNone: the end
  std::vector<std::size_t> output_of_;   // the output it is written into; kNone
  std::vector<std::uint16_t> location_;  // kept up to date while code is emitted
  std::vector<std::uint16_t> free_, free_kept_;
  std::vector<std::pair<std::size_t, std::uint16_t>> expansions_;  // of the pass at hand: value, location
};

}  // namespace

TileProgram decode(const Kernel& kernel, const TileForm& form) { return Decoder(kernel, form).run(); }

}  // namespace caldera::cpu
