#include "engine/compile/fuse/region_kernel.h"

#include <fmt/core.h>

#include <array>
#include <unordered_map>

#include "engine/base/error.h"

namespace caldera {
namespace {

class Builder {
 public:
  /// `group` gives the space and its rows.
  Builder(const Placement& placement, const Group& group) : placement_(placement), group_(group) {}

  /// A value that comes as the kernel's next input without being an operand: as it was computed, not
  /// narrowed.
  void given(std::uint32_t root) {
    const auto number = static_cast<std::uint16_t>(out_.kernel.inputs.size());
    const DType type = compute_type(placement_.node(root).dtype);
    out_.kernel.inputs.push_back(type);
    values_[root] =
        wrapped(emit({.op = ScalarOp::load, .type = type, .a = number}), placement_.node(root).dtype);
  }

  /// An operand of a member with extents `extents`.
  std::uint16_t operand(const Source& source, const Shape& extents) {
    const auto found = values_.find(source.root);
    if (found != values_.end()) return found->second;
    if (placement_.node(source.root).op->kind == OpClass::scalar) return scalar(placement_.node(source.root));
    if (is_uniform(source.root)) return generated(source.root, {});
    const auto view = view_in_group(group_, extents, *source.view, placement_.node(source.shape_of).shape);
    if (!view) throw PlanError("compile: an operand does not fit its region");
    if (placement_.is_free(source.root) || placement_.is_generated(source.root)) {
      return generated(source.root, *view);
    }
    return load(source.root, *view, is_per_row(group_, extents));
  }

  void member(std::uint32_t i) {
    const Program::Node& n = placement_.node(i);
    if (n.op->kind == OpClass::reduce) {
      const Source s = placement_.operand(i, 0);
      const std::uint16_t a = at_points(operand(s, placement_.node(s.shape_of).shape));
      const ScalarOp op = facts(combine_of(n.op->scalar)).row;
      const std::uint16_t value = emit({.op = op, .type = compute_type(n.dtype), .a = a});
      values_[i] = may_leave_range(op) ? wrapped(value, n.dtype) : value;
    } else if (n.op->kind == OpClass::random) {
      const auto view = view_in_group(group_, n.shape, dense_view(n.shape), n.shape);
      const std::uint16_t seed = operand(placement_.operand(i, 0), n.shape);
      values_[i] =
          emit({.op = n.op->scalar, .type = compute_type(n.dtype), .a = seed, .b = index(view.value())});
    } else {
      std::array<std::uint16_t, 3> operands{};
      for (std::size_t k = 0; k < placement_.operand_count(i); ++k) {
        operands[k] = operand(placement_.operand(i, k), n.shape);
      }
      values_[i] = function(n, operands);
    }
    note(n.op->name);
  }

  void store(std::uint32_t root) {
    const Program::Node& n = placement_.node(root);
    const bool per_row = is_per_row(group_, n.shape);
    const std::uint16_t value = unrounded(values_.at(root), n.dtype);
    store(group_.reduced == 0 || per_row ? value : at_points(value), n.dtype);
  }
  /// In the type that it is computed in.
  void store_computed(std::uint32_t root) {
    store(values_.at(root), compute_type(placement_.node(root).dtype));
  }
  void store(std::uint16_t value, DType type) { out_.kernel.outputs.push_back({value, type}); }
  void reduce(Combine combine) { out_.kernel.reduce = combine; }

  /// Adds an operation to the name. Long names end in a count.
  void note(std::string_view op) {
    constexpr int kShown = 4;
    if (++noted_ <= kShown) name_ += fmt::format("{}{}", name_.empty() ? "" : "+", op);
  }

  RegionKernel finish(std::string_view wrapper = {}) {
    constexpr int kShown = 4;
    if (noted_ > kShown) name_ += fmt::format("+{} more", noted_ - kShown);
    if (name_.empty()) name_ = "copy";
    out_.kernel.name = wrapper.empty() ? name_ : fmt::format("{}({})", wrapper, name_ == "copy" ? "" : name_);
    out_.kernel.index_count = static_cast<int>(out_.indices.size());
    drop_unread_roundings();
    out_.kernel.finish();
    return std::move(out_);
  }

 private:
  std::uint16_t emit(const Instruction& instruction) {
    out_.kernel.code.push_back(instruction);
    return static_cast<std::uint16_t>(out_.kernel.code.size() - 1);
  }

  /// The value as an integer type of memory holds it.
  std::uint16_t wrapped(std::uint16_t value, DType memory) {
    if (!is_narrow_integer(memory)) return value;
    return emit({.op = narrowing(memory), .type = compute_type(memory), .a = value});
  }

  /// What may be stored in the type of memory instead of the value: a store rounds by itself.
  std::uint16_t unrounded(std::uint16_t value, DType memory) const {
    const Instruction& i = out_.kernel.code[value];
    return is_half(memory) && narrowed_to(i.op) == memory ? i.a : value;
  }

  /// Takes out the roundings that nothing reads any more.
  void drop_unread_roundings() {
    Kernel& kernel = out_.kernel;
    std::vector<bool> read(kernel.code.size());
    const auto for_operands = [](Instruction& i, auto visit) {
      const int arity = info(i.op).arity;
      if (arity >= 1) visit(i.a);
      if (arity >= 2) visit(i.b);
      if (arity >= 3) visit(i.c);
    };
    for (Instruction& i : kernel.code) for_operands(i, [&](std::uint16_t v) { read[v] = true; });
    for (const Kernel::Output& o : kernel.outputs) read[o.value] = true;
    std::vector<std::uint16_t> number(kernel.code.size());
    std::uint16_t next = 0;
    for (std::size_t v = 0; v < number.size(); ++v) {
      Instruction i = kernel.code[v];
      const auto memory = narrowed_to(i.op);
      if (!read[v] && memory && is_half(*memory)) continue;
      for_operands(i, [&](std::uint16_t& operand) { operand = number[operand]; });
      kernel.code[next] = i;
      number[v] = next++;
    }
    kernel.code.resize(next);
    for (Kernel::Output& o : kernel.outputs) o.value = number[o.value];
  }

  /// An element-wise operation. Floating types of 16 bits are computed in f32: a conversion to one rounds,
  /// one from it is none. Narrow integers are computed in wider ones: whatever may leave their range is
  /// wrapped.
  std::uint16_t function(const Program::Node& n, const std::array<std::uint16_t, 3>& operands) {
    const DType type = compute_type(n.dtype);
    if (n.op->scalar != ScalarOp::cast) {
      const std::uint16_t value =
          emit({.op = n.op->scalar, .type = type, .a = operands[0], .b = operands[1], .c = operands[2]});
      return may_leave_range(n.op->scalar) ? wrapped(value, n.dtype) : value;
    }
    std::uint16_t value = operands[0];
    const DType from = out_.kernel.code[value].type;
    // Floating numbers saturate at the limits of the narrow type, so they may not be converted to a wider one
    // first.
    const bool saturates = is_narrow_integer(n.dtype) && is_floating(from);
    if (from != type && !saturates) value = emit({.op = ScalarOp::cast, .type = type, .a = value});
    if (!is_memory_type(n.dtype)) return value;
    return emit({.op = narrowing(n.dtype), .type = type, .a = value});
  }

  /// The value as one a point, where it is the same all along the row (see RowPhases).
  std::uint16_t at_points(std::uint16_t value) {
    if (!row_phases(out_.kernel).per_row[value]) return value;
    const std::uint16_t i = index({0, Dims::filled(group_.space.rank(), 0)});
    const std::uint16_t always = emit({.op = ScalarOp::equal, .type = DType::boolean, .a = i, .b = i});
    const DType type = out_.kernel.code[value].type;
    return emit({.op = ScalarOp::select, .type = type, .a = always, .b = value, .c = value});
  }

  std::uint16_t load(std::uint32_t root, const View& view, bool per_row) {
    for (std::size_t i = 0; i < out_.inputs.size(); ++i) {
      if (out_.inputs[i].root == root && out_.inputs[i].view == view && load_is_row_[i] == per_row) {
        return load_values_[i];
      }
    }
    const auto number = static_cast<std::uint16_t>(out_.kernel.inputs.size());
    const DType type = placement_.node(root).dtype;
    out_.inputs.push_back({root, view});
    out_.kernel.inputs.push_back(type);
    load_is_row_.push_back(per_row);
    load_values_.push_back(
        emit({.op = per_row ? ScalarOp::load_row : ScalarOp::load, .type = compute_type(type), .a = number}));
    return load_values_.back();
  }

  bool is_uniform(std::uint32_t root) const {
    if (placement_.node(root).op->kind == OpClass::scalar) return true;
    if (!placement_.is_generated(root)) return false;
    for (std::size_t k = 0; k < placement_.operand_count(root); ++k) {
      if (!is_uniform(placement_.operand(root, k).root)) return false;
    }
    return true;
  }

  /// A number, a coordinate or a function of such, seen through a view over the space.
  std::uint16_t generated(std::uint32_t root, const View& view) {
    const Program::Node& n = placement_.node(root);
    if (n.op->kind == OpClass::scalar) return scalar(n);
    if (n.op->kind == OpClass::index) return index(view);
    const bool uniform = is_uniform(root);
    for (const Generated& known : generated_) {
      if (known.root == root && (uniform || known.view == view)) return known.value;
    }
    std::array<std::uint16_t, 3> operands{};
    for (std::size_t k = 0; k < placement_.operand_count(root); ++k) {
      const Source s = placement_.operand(root, k);
      View inner;
      if (!is_uniform(s.root)) {
        const auto composed = compose_views(*s.view, n.shape, view, group_.space);
        if (!composed) throw PlanError("compile: coordinates do not fit their region");
        inner = *composed;
      }
      operands[k] = generated(s.root, inner);
    }
    const std::uint16_t value = function(n, operands);
    generated_.push_back({root, view, value});
    return value;
  }

  std::uint16_t scalar(const Program::Node& leaf) {
    for (std::size_t i = 0; i < out_.scalars.size(); ++i) {
      if (out_.scalars[i] == leaf.slot) return scalar_values_[i];
    }
    const auto number = static_cast<std::uint16_t>(out_.scalars.size());
    out_.scalars.push_back(leaf.slot);
    const DType type = compute_type(leaf.dtype);
    out_.kernel.scalars.push_back(type);
    scalar_values_.push_back(emit({.op = ScalarOp::scalar, .type = type, .a = number}));
    return scalar_values_.back();
  }

  std::uint16_t index(const View& view) {
    for (std::size_t i = 0; i < out_.indices.size(); ++i) {
      if (out_.indices[i] == view) return index_values_[i];
    }
    const auto number = static_cast<std::uint16_t>(out_.indices.size());
    out_.indices.push_back(view);
    index_values_.push_back(emit({.op = ScalarOp::index, .type = DType::i32, .a = number}));
    return index_values_.back();
  }

  struct Generated {
    std::uint32_t root;
    View view;
    std::uint16_t value;
  };

  const Placement& placement_;
  const Group& group_;
  RegionKernel out_;
  std::unordered_map<std::uint32_t, std::uint16_t> values_;  // of members
  std::vector<std::uint16_t> load_values_, scalar_values_, index_values_;
  std::vector<bool> load_is_row_;
  std::vector<Generated> generated_;
  std::string name_;
  int noted_ = 0;
};

}  // namespace

RegionKernel build_group_kernel(const Placement& placement, const Group& group) {
  Builder builder(placement, group);
  if (group.other != kNoRoot) builder.given(group.other);
  if (group.is_plain_reduction(placement)) {
    const std::uint32_t last = group.members.back();
    for (std::uint32_t i : group.members) {
      if (i != last) builder.member(i);
    }
    const Source s = placement.operand(last, 0);
    const Program::Node& n = placement.node(last);
    builder.store(builder.operand(s, placement.node(s.shape_of).shape), n.dtype);
    builder.reduce(combine_of(n.op->scalar));
    return builder.finish(n.op->name);
  }
  for (std::uint32_t i : group.members) builder.member(i);
  for (std::uint32_t i : group.outputs) builder.store(i);
  return builder.finish();
}

RegionKernel build_copy_kernel(const Placement& placement, const Source& source, DType type) {
  Group group;
  group.space = placement.node(source.shape_of).shape;
  Builder builder(placement, group);
  builder.store(builder.operand(source, group.space), type);
  return builder.finish();
}

Kernel build_store_kernel(DType from, DType to) {
  Kernel kernel;
  kernel.name = name(to);
  kernel.inputs = {from};
  kernel.code = {{.op = ScalarOp::load, .type = compute_type(from)}};
  kernel.outputs = {{0, to}};
  kernel.finish();
  return kernel;
}

RegionKernel build_expression_kernel(const Placement& placement, const std::vector<std::uint32_t>& given,
                                     const std::vector<std::uint32_t>& between, std::uint32_t result) {
  Group group;
  group.space = placement.node(result).shape;
  Builder builder(placement, group);
  for (std::uint32_t root : given) builder.given(root);
  for (std::uint32_t root : between) builder.member(root);
  builder.store_computed(result);
  return builder.finish();
}

}  // namespace caldera
