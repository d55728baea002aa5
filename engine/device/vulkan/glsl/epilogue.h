// An element-wise kernel as a GLSL function, for shaders that make a value and hand it on: the epilogue of a
// contraction, the score of an attention step.
//
// The kernel's first inputs are parameters of the function. Its other inputs, its index operands and its
// outputs are addressed over a space of `rank` coordinates, also parameters. A shader is put together so:
//
//   GlslEpilogue e(kernel, shape, "epilogue");
//   GlslNeeds needs = e.needs();                   // and what the shader itself needs
//   append_glsl_preamble(needs, options, text);    // #version, extensions, Floats, Ints ...
//   text += layout(local_size_x ...) ...
//   text += "layout(buffer_reference, ...) readonly buffer Arguments {" + own slots + e.slot_members() +
//           own integers + e.integer_members() + "}; layout(push_constant) uniform Push { Arguments a; };";
//   append_glsl_functions(needs, text);
//   text += e.function();                          // globals that hold the arguments, and the function
//   text += "void main() {" + e.load("a.") + ...   // before the first call
//
// Names in the text are those of GlslOperands after "<name>_", and `x<n>` and `c<d>` for the parameters. Two
// epilogues with different names go into one shader.
//
// The argument block: first 8-byte slots, the address of every memory operand (inputs that are no parameters,
// then outputs if they are stored), then the scalar arguments; then 4-byte integers, for every operand (those
// inputs, index operands, outputs) its bias (index operands and strided ones) and its `rank` strides (strided
// ones). engine/device/vulkan/steps/kernel_arguments.h writes both parts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/device/vulkan/glsl/operands.h"

namespace caldera {

class GlslEpilogue {
 public:
  struct Shape {
    int rank = 0;          // coordinates
    int parameters = 1;    // the kernel's inputs 0 .. parameters - 1
    bool returns = false;  // the function returns the one output; else it is void and stores all of them
    // Says of every operand (not the parameters; not the outputs if `returns`) whether it is scalar or
    // strided.
    std::vector<Access> access;
    friend bool operator==(const Shape&, const Shape&) = default;
    Hash128 hash() const;  // for the key of a pipeline, with those of the kernel and the name
  };
  /// Keeps a reference to `kernel`. Throws DTypeError naming the operation when the kernel asks for one that
  /// GLSL lacks.
  GlslEpilogue(const Kernel& kernel, const Shape& shape, std::string_view name,
               const GlslOptions& options = {});

  const GlslNeeds& needs() const { return needs_; }
  std::string slot_members() const { return operands_.slot_members(); }
  std::string integer_members() const { return operands_.integer_members(); }
  int slots() const { return operands_.slots(); }
  int integers() const { return operands_.integers(); }
  /// `<type> <name>(<type> x0, ..., int c0, ...)` with the globals ahead of it.
  const std::string& function() const { return function_; }
  /// Statements that fill the globals. `block`: the argument block as an expression with its dot.
  std::string load(std::string_view block) const;

 private:
  GlslOperands operands_;
  GlslNeeds needs_;
  std::string function_;
};

}  // namespace caldera
