#include "engine/compile/region_kernel.h"

#include <fmt/core.h>

#include <array>
#include <unordered_map>

namespace caldera {
namespace {

class Builder {
 public:
  explicit Builder(const Regions& regions) : regions_(regions) {}

  /// Value of an operand that is no member of the region.
  std::uint16_t external(const Source& source) {
    const Program::Node& root = regions_.node(source.root);
    if (root.op->kind == OpClass::scalar) return scalar(root);
    if (root.op->kind == OpClass::index) return index(*source.view);
    for (std::size_t i = 0; i < out_.inputs.size(); ++i) {
      if (out_.inputs[i].root == source.root && out_.inputs[i].view == *source.view) return load_values_[i];
    }
    const auto number = static_cast<std::uint16_t>(out_.inputs.size());
    out_.inputs.push_back({source.root, *source.view});
    out_.kernel.inputs.push_back(root.dtype);
    load_values_.push_back(emit({.op = ScalarOp::load, .type = root.dtype, .a = number}));
    return load_values_.back();
  }

  void member(std::uint32_t i) {
    const Program::Node& n = regions_.node(i);
    if (n.op->kind == OpClass::random) {
      const std::uint16_t seed = operand(regions_.operands(i)[0]);
      values_[i] = emit({.op = n.op->scalar, .type = n.dtype, .a = seed, .b = index(dense_view(n.shape))});
    } else {
      std::array<std::uint16_t, 3> operands{};
      std::size_t count = 0;
      for (const Source& source : regions_.operands(i)) operands[count++] = operand(source);
      values_[i] =
          emit({.op = n.op->scalar, .type = n.dtype, .a = operands[0], .b = operands[1], .c = operands[2]});
    }
    note(n.op->name);
  }

  std::uint16_t operand(const Source& source) {
    const auto found = values_.find(source.root);
    return found != values_.end() ? found->second : external(source);
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
    out_.kernel.finish();
    return std::move(out_);
  }

 private:
  std::uint16_t emit(const Instruction& instruction) {
    out_.kernel.code.push_back(instruction);
    return static_cast<std::uint16_t>(out_.kernel.code.size() - 1);
  }

  std::uint16_t scalar(const Program::Node& leaf) {
    for (std::size_t i = 0; i < out_.scalars.size(); ++i) {
      if (out_.scalars[i] == leaf.slot) return scalar_values_[i];
    }
    const auto number = static_cast<std::uint16_t>(out_.scalars.size());
    out_.scalars.push_back(leaf.slot);
    out_.kernel.scalars.push_back(leaf.dtype);
    scalar_values_.push_back(emit({.op = ScalarOp::scalar, .type = leaf.dtype, .a = number}));
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

  const Regions& regions_;
  RegionKernel out_;
  std::unordered_map<std::uint32_t, std::uint16_t> values_;  // of members
  std::vector<std::uint16_t> load_values_, scalar_values_, index_values_;
  std::string name_;
  int noted_ = 0;
};

Combine combine_of(ScalarOp op) {
  switch (op) {
    case ScalarOp::maximum:
      return Combine::maximum;
    case ScalarOp::minimum:
      return Combine::minimum;
    case ScalarOp::mul:
      return Combine::product;
    default:
      return Combine::sum;
  }
}

}  // namespace

RegionKernel build_region_kernel(const Regions& regions, std::uint32_t region) {
  const Program::Node& last = regions.node(region);
  Builder builder(regions);
  for (std::uint32_t i : regions.members(region)) {
    if (i != region || last.op->kind != OpClass::reduce) builder.member(i);
  }
  if (last.op->kind != OpClass::reduce) {
    builder.store(static_cast<std::uint16_t>(builder.operand({region, region, nullptr})), last.dtype);
    return builder.finish();
  }
  builder.store(builder.operand(regions.operands(region)[0]), last.dtype);
  builder.reduce(combine_of(last.op->scalar));
  return builder.finish(last.op->name);
}

RegionKernel build_copy_kernel(const Regions& regions, const Source& source) {
  Builder builder(regions);
  builder.store(builder.external(source), regions.node(source.root).dtype);
  return builder.finish();
}

}  // namespace caldera
