// The operands and scalar arguments of a kernel as a shader sees them: members of the argument block,
// registers that hold them, and the element numbers that follow from the coordinates of a point.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/device/vulkan/glsl/source.h"

namespace caldera {

/// Operands are numbered as in a region step: the kernel's inputs, its index operands, its outputs. Names:
/// `p<k>` address, `b<k>` bias, `t<k>_<d>` stride along dimension d, `s<n>` scalar argument, each after
/// `prefix`; `d<d>` extents, `c<d>` coordinates; `k<k>` element number of a row, `o<k>` of a point.
class GlslOperands {
 public:
  struct Shape {
    std::vector<Access> access;  // of every operand, those that are not there included
    int rank = 0;
    int reduce_rank = 0;
    std::string prefix;
    int parameters = 0;  // the first inputs are no operands
    bool without_outputs = false;
  };
  GlslOperands(const Kernel& kernel, Shape shape, const GlslOptions& options);

  int count() const { return outputs_from_ + static_cast<int>(kernel_.outputs.size()); }
  int index_operand(int n) const { return static_cast<int>(kernel_.inputs.size()) + n; }
  int output(int n) const { return outputs_from_ + n; }
  int rank() const { return shape_.rank; }
  int kept_rank() const { return shape_.rank - shape_.reduce_rank; }
  const std::string& prefix() const { return shape_.prefix; }
  const GlslOptions& options() const { return options_; }

  bool is_there(int operand) const {
    return operand >= shape_.parameters && !(is_output(operand) && shape_.without_outputs);
  }
  bool is_index(int operand) const { return operand >= index_operand(0) && operand < outputs_from_; }
  bool is_output(int operand) const { return operand >= outputs_from_; }
  bool has_memory(int operand) const { return is_there(operand) && !is_index(operand); }
  /// Whether it has one element a row: see row_operands().
  bool one_a_row(int operand) const { return one_a_row_[static_cast<std::size_t>(operand)]; }
  Access access(int operand) const { return shape_.access[static_cast<std::size_t>(operand)]; }
  DType memory_type(int operand) const;
  bool has_bias(int operand) const {
    return is_there(operand) && (is_index(operand) || access(operand) == Access::strided);
  }
  int strides(int operand) const;

  int slots() const { return static_cast<int>(slot_list().size()); }
  int integers() const { return static_cast<int>(integer_list().size()); }

  /// Members of the argument block, one a line: those of eight bytes and those of four.
  std::string slot_members() const;
  std::string integer_members() const;
  /// Declares registers of these names that hold what the members do. Stores through the outputs may alias
  /// the block as far as compilers know, so members are read once.
  void declare_loaded(std::string_view block, GlslBody& body) const;
  /// The two halves of that: declarations for the scope of the file, and assignments.
  std::string declarations() const { return slot_members() + integer_members(); }
  void load(std::string_view block, GlslBody& body) const;

 private:
  struct Member {
    std::string_view type;
    std::string name;
  };
  std::vector<Member> slot_list() const;
  std::vector<Member> integer_list() const;

  const Kernel& kernel_;
  Shape shape_;
  GlslOptions options_;
  int outputs_from_;
  std::vector<bool> one_a_row_;
};

}  // namespace caldera
