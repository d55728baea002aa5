#include "engine/kernel/glsl.h"

#include <fmt/core.h>

#include <iterator>
#include <utility>

#include "engine/kernel/glsl_expression.h"
#include "engine/kernel/glsl_library.h"
#include "engine/tensor/error.h"

namespace caldera {
namespace {

/// Writes one shader, body first: what the body uses decides what stands before it.
class ShaderWriter {
 public:
  ShaderWriter(const Kernel& kernel, const KernelVariant& variant, const GlslOptions& options)
      : kernel_(kernel), variant_(variant), options_(options) {}

  std::string write();

 private:
  enum class Part { whole, kept, reduced };

  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    body_.append(2 * static_cast<std::size_t>(depth_), ' ');
    fmt::format_to(std::back_inserter(body_), format, std::forward<Args>(args)...);
    body_ += '\n';
  }
  void open() { ++depth_; }
  void close() {
    --depth_;
    line("}}");
  }

  int inputs() const { return static_cast<int>(kernel_.inputs.size()); }
  int outputs() const { return static_cast<int>(kernel_.outputs.size()); }
  int operands() const { return inputs() + kernel_.index_count + outputs(); }
  int kept_rank() const { return variant_.rank - variant_.reduce_rank; }
  bool is_index(int operand) const { return operand >= inputs() && operand < inputs() + kernel_.index_count; }
  bool is_output(int operand) const { return operand >= inputs() + kernel_.index_count; }
  Access access(int operand) const { return variant_.access[static_cast<std::size_t>(operand)]; }
  DType memory_type(int operand) const {
    return is_output(operand)
               ? kernel_.outputs[static_cast<std::size_t>(operand - inputs() - kernel_.index_count)].type
               : kernel_.inputs[static_cast<std::size_t>(operand)];
  }
  bool has_bias(int operand) const { return is_index(operand) || access(operand) == Access::strided; }
  int strides(int operand) const {
    if (access(operand) != Access::strided) return 0;
    return is_output(operand) && kernel_.reduce ? kept_rank() : variant_.rank;
  }

  void use_type(DType type);
  void head(std::string& out);
  void load_arguments();
  void hoist();
  void elementwise();
  void reduce();
  void coordinates(const char* number, int first, int last);
  void offsets(Part part, const char* number);
  void evaluate();
  void store(int output, const std::string& value, DType type, const std::string& offset);
  void accumulate();
  void combine_lanes(const char* type);
  GlslValue value(std::uint16_t v) const { return {values_[v], kernel_.code[v].type}; }

  const Kernel& kernel_;
  const KernelVariant& variant_;
  const GlslOptions& options_;
  std::string body_;
  int depth_ = 1;
  GlslCalls calls_;
  std::vector<std::string> values_;
  bool uses_int64_ = false, uses_bytes_ = false, uses_double_ = false, uses_subgroups_ = false,
       uses_shared_ = false;
};

std::string_view memory_struct(DType type) {
  switch (type) {
    case DType::boolean:
    case DType::u8:
      return "Bytes";
    case DType::i32:
      return "Ints";
    case DType::i64:
      return "Longs";
    case DType::f64:
      return "Doubles";
    default:
      return "Floats";
  }
}

void ShaderWriter::use_type(DType type) {
  uses_int64_ |= type == DType::i64;
  uses_double_ |= type == DType::f64;
}

void ShaderWriter::head(std::string& out) {
  out +=
      "#version 460\n"
      "#extension GL_EXT_buffer_reference : require\n";
  if (uses_bytes_) out += "#extension GL_EXT_shader_8bit_storage : require\n";
  if (uses_int64_) out += "#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n";
  if (uses_subgroups_) out += "#extension GL_KHR_shader_subgroup_arithmetic : require\n";
  if (options_.preserve_nan_inf) {
    // SignedZeroInfNanPreserve: neither the optimiser nor the driver may fold x - x, 0 * x and the like.
    out +=
        "#extension GL_EXT_spirv_intrinsics : require\n"
        "spirv_execution_mode(extensions = [\"SPV_KHR_float_controls\"], capabilities = [4466], 4461, 32);\n";
    if (uses_double_)
      out +=
          "spirv_execution_mode(extensions = [\"SPV_KHR_float_controls\"], capabilities = [4466], 4461, "
          "64);\n";
  }
  fmt::format_to(std::back_inserter(out), "layout(local_size_x = {}) in;\n", variant_.lanes);

  constexpr std::pair<const char*, const char*> kMemory[] = {{"Floats", "float"},
                                                             {"Ints", "int"},
                                                             {"Bytes", "uint8_t"},
                                                             {"Longs", "int64_t"},
                                                             {"Doubles", "double"}};
  for (const auto& [block, type] : kMemory) {
    const std::string_view name = block;
    if ((name == "Bytes" && !uses_bytes_) || (name == "Longs" && !uses_int64_) ||
        (name == "Doubles" && !uses_double_))
      continue;
    const int size = name == "Bytes" ? 1 : name == "Longs" || name == "Doubles" ? 8 : 4;
    fmt::format_to(std::back_inserter(out),
                   "layout(buffer_reference, std430, buffer_reference_align = {}) buffer {} {{ {} v[]; }};\n",
                   size, block, type);
  }

  out += "layout(buffer_reference, std430, buffer_reference_align = 8) readonly buffer Arguments {\n";
  for (int k = 0; k < operands(); ++k) {
    if (!is_index(k))
      fmt::format_to(std::back_inserter(out), "  {} p{};\n", memory_struct(memory_type(k)), k);
  }
  for (std::size_t s = 0; s < kernel_.scalars.size(); ++s)
    fmt::format_to(std::back_inserter(out), "  uvec2 s{};\n", s);
  out += "  int points;\n  int reduced;\n";
  for (int d = 0; d < variant_.rank; ++d) fmt::format_to(std::back_inserter(out), "  int d{};\n", d);
  for (int k = 0; k < operands(); ++k) {
    if (has_bias(k)) fmt::format_to(std::back_inserter(out), "  int b{};\n", k);
    for (int d = 0; d < strides(k); ++d) fmt::format_to(std::back_inserter(out), "  int t{}_{};\n", k, d);
  }
  out += "};\nlayout(push_constant) uniform Push { Arguments a; };\n";
  if (uses_shared_) {
    const DType type = kernel_.code[kernel_.outputs[0].value].type;
    fmt::format_to(std::back_inserter(out), "shared {} part[{}];\n",
                   type == DType::boolean ? std::string_view("uint") : glsl_type(type), variant_.lanes);
  }
}

/// Copies the arguments into registers: stores through the outputs may alias them as far as compilers know.
void ShaderWriter::load_arguments() {
  for (int k = 0; k < operands(); ++k) {
    if (!is_index(k)) line("{} p{} = a.p{};", memory_struct(memory_type(k)), k, k);
  }
  line("const uint points = uint(a.points);");
  if (kernel_.reduce) line("const uint reduced = uint(a.reduced);");
  for (int d = 0; d < variant_.rank; ++d) line("const int d{} = a.d{};", d, d);
  for (int k = 0; k < operands(); ++k) {
    if (has_bias(k)) line("const int b{} = a.b{};", k, k);
    for (int d = 0; d < strides(k); ++d) line("const int t{}_{} = a.t{}_{};", k, d, k, d);
  }
}

/// What does not depend on the point: scalar arguments and elements that every point reads.
void ShaderWriter::hoist() {
  values_.assign(kernel_.code.size(), {});
  std::vector<bool> used(kernel_.code.size());
  for (const Instruction& i : kernel_.code) {
    const bool random = i.op == ScalarOp::philox_uniform || i.op == ScalarOp::philox_normal;
    const int arity = info(i.op).arity;
    const bool seed_in_place = random && kernel_.code[i.a].op == ScalarOp::scalar;
    if (arity >= 1 && !seed_in_place) used[i.a] = true;
    if (arity >= 2) used[i.b] = true;
    if (arity >= 3) used[i.c] = true;
  }
  for (const Kernel::Output& o : kernel_.outputs) used[o.value] = true;

  for (std::size_t v = 0; v < kernel_.code.size(); ++v) {
    const Instruction& i = kernel_.code[v];
    const bool same_everywhere = i.op == ScalarOp::load && access(i.a) == Access::scalar;
    if (!used[v] || (i.op != ScalarOp::scalar && !same_everywhere)) continue;
    std::string text;
    const DType from = i.op == ScalarOp::scalar ? kernel_.scalars[i.a] : kernel_.inputs[i.a];
    if (same_everywhere) {
      text = from == DType::boolean ? fmt::format("uint(p{}.v[0]) != 0u", i.a)
             : from == DType::u8    ? fmt::format("uint(p{}.v[0])", i.a)
                                    : fmt::format("p{}.v[0]", i.a);
    } else {
      switch (from) {
        case DType::f32:
          text = fmt::format("uintBitsToFloat(a.s{}.x)", i.a);
          break;
        case DType::i32:
          text = fmt::format("int(a.s{}.x)", i.a);
          break;
        case DType::u8:
          text = fmt::format("(a.s{}.x & 0xffu)", i.a);
          break;
        case DType::boolean:
          text = fmt::format("(a.s{}.x & 0xffu) != 0u", i.a);
          break;
        case DType::i64:
          text = fmt::format("packInt2x32(ivec2(a.s{}))", i.a);
          break;
        case DType::f64:
          text = fmt::format("packDouble2x32(a.s{})", i.a);
          break;
        default:
          text = glsl_type(from);  // throws
      }
    }
    use_type(from);
    use_type(i.type);
    line("const {} v{} = {};", glsl_type(i.type), v, glsl_convert({"(" + text + ")", from}, i.type, calls_));
    values_[v] = fmt::format("v{}", v);
  }
}

/// Declares c<first> .. c<last-1>, the coordinates of point `number` in dimensions [first, last).
void ShaderWriter::coordinates(const char* number, int first, int last) {
  bool needed = false;
  for (int k = 0; k < operands(); ++k) {
    if (strides(k) > first) needed = true;
  }
  if (!needed || first == last) return;
  if (last - first == 1) {
    line("const int c{} = int({});", first, number);
    return;
  }
  line("uint q{} = {};", first, number);
  for (int d = last - 1; d > first; --d) {
    line("const int c{} = int(q{} % uint(d{}));", d, first, d);
    line("q{} /= uint(d{});", first, d);
  }
  line("const int c{} = int(q{});", first, first);
}

/// Declares every operand's element number: o<k> of a point; or in a reduction k<k>, the part that the kept
/// dimensions give, and then o<k> of a reduced point. `number` is the number of the point among those of
/// `part`.
void ShaderWriter::offsets(Part part, const char* number) {
  const int first = part == Part::reduced ? kept_rank() : 0;
  const int last = part == Part::kept ? kept_rank() : variant_.rank;
  for (int k = 0; k < operands(); ++k) {
    if (part == Part::reduced && is_output(k)) continue;
    std::string text = part == Part::reduced ? fmt::format("k{}", k)
                       : has_bias(k)         ? fmt::format("b{}", k)
                                             : "0";
    if (access(k) == Access::linear) {
      const bool row = part == Part::kept && !is_output(k);
      text += row ? fmt::format(" + int({} * reduced)", number) : fmt::format(" + int({})", number);
    }
    for (int d = first; d < last && d < strides(k); ++d) text += fmt::format(" + c{} * t{}_{}", d, k, d);
    line("const int {}{} = {};", part == Part::kept ? 'k' : 'o', k, text);
  }
}

/// Evaluates the code at the point whose element numbers are o<k>.
void ShaderWriter::evaluate() {
  for (std::size_t v = 0; v < kernel_.code.size(); ++v) {
    const Instruction& i = kernel_.code[v];
    if (i.op == ScalarOp::scalar || (i.op == ScalarOp::load && access(i.a) == Access::scalar)) continue;
    std::string text;
    switch (i.op) {
      case ScalarOp::load: {
        const DType from = kernel_.inputs[i.a];
        const std::string element = fmt::format("p{}.v[o{}]", i.a, i.a);
        const std::string loaded = from == DType::boolean ? fmt::format("(uint({}) != 0u)", element)
                                   : from == DType::u8    ? fmt::format("uint({})", element)
                                                          : element;
        text = glsl_convert({loaded, from}, i.type, calls_);
        break;
      }
      case ScalarOp::index:
        text = glsl_convert({fmt::format("o{}", inputs() + i.a), DType::i32}, i.type, calls_);
        break;
      case ScalarOp::philox_uniform:
      case ScalarOp::philox_normal: {
        if (i.type != DType::f32 && i.type != DType::f64)
          throw DTypeError(fmt::format("{}: not available for {} on Vulkan", info(i.op).name, name(i.type)));
        const Instruction& seed = kernel_.code[i.a];
        std::string key;
        if (seed.op == ScalarOp::scalar) {
          key = fmt::format("a.s{}", seed.a);
        } else {
          key = fmt::format("uvec2(unpackInt2x32({}))", glsl_convert(value(i.a), DType::i64, calls_));
          uses_int64_ = true;
        }
        std::string function(info(i.op).name);
        if (i.type == DType::f64) function += "_d";
        text = fmt::format("{}({}, uint({}))", function, key, glsl_convert(value(i.b), DType::i32, calls_));
        calls_.insert(function);
        break;
      }
      default: {
        const int arity = info(i.op).arity;
        text = glsl_expression(i.op, i.type, value(i.a), arity >= 2 ? value(i.b) : GlslValue{},
                               arity >= 3 ? value(i.c) : GlslValue{}, calls_);
      }
    }
    use_type(i.type);
    values_[v] = fmt::format("v{}", v);
    line("const {} {} = {};", glsl_type(i.type), values_[v], text);
  }
}

void ShaderWriter::store(int output, const std::string& text, DType type, const std::string& offset) {
  const int k = inputs() + kernel_.index_count + output;
  const DType to = kernel_.outputs[static_cast<std::size_t>(output)].type;
  const std::string stored = glsl_convert({text, type}, to, calls_);
  line("p{}.v[{}] = {};", k, offset,
       to == DType::boolean ? fmt::format("uint8_t({} ? 1u : 0u)", stored)
       : to == DType::u8    ? fmt::format("uint8_t({})", stored)
                            : stored);
}

void ShaderWriter::elementwise() {
  line("const uint stride = gl_NumWorkGroups.x * {}u;", variant_.lanes);
  line("for (uint n = gl_GlobalInvocationID.x; n < points; n += stride) {{");
  open();
  coordinates("n", 0, variant_.rank);
  offsets(Part::whole, "n");
  evaluate();
  for (int o = 0; o < outputs(); ++o) {
    const GlslValue v = value(kernel_.outputs[static_cast<std::size_t>(o)].value);
    store(o, v.text, v.type, fmt::format("o{}", inputs() + kernel_.index_count + o));
  }
  close();
}

/// One reduced point joins the accumulator. Sums of f32 go through blocks of 256, so that a long sum loses
/// little.
void ShaderWriter::accumulate() {
  const Kernel::Output& out = kernel_.outputs[0];
  const GlslValue v = value(out.value);
  line("acc = {};", glsl_combine(*kernel_.reduce, v.type, "acc", v.text, calls_));
  if (*kernel_.reduce == Combine::sum && v.type == DType::f32) {
    line("if ((++count & 255u) == 0u) {{");
    open();
    line("total += acc;");
    line("acc = 0.0;");
    close();
  }
}

/// acc of every lane into acc of lane 0, in an order that depends on the device only.
void ShaderWriter::combine_lanes(const char* type) {
  const DType dtype = kernel_.code[kernel_.outputs[0].value].type;
  const Combine combine = *kernel_.reduce;
  const bool subgroup_type = dtype == DType::f32 || dtype == DType::i32 || dtype == DType::u8;
  const bool subgroups = options_.subgroup_size > 0 && subgroup_type;
  if (subgroups) {
    uses_subgroups_ = true;
    constexpr const char* kNames[] = {"subgroupAdd", "subgroupMax", "subgroupMin", "subgroupMul"};
    const char* function = kNames[static_cast<int>(combine)];
    if (dtype == DType::f32 && (combine == Combine::maximum || combine == Combine::minimum)) {
      // The subgroup operations may drop NaN.
      calls_.insert("is_nan");
      calls_.insert("constants");
      line("const uint some_nan = subgroupMax(is_nan(acc) ? 1u : 0u);");
      line("acc = {}(is_nan(acc) ? {} : acc);", function, glsl_identity(combine, dtype, calls_));
      line("if (some_nan != 0u) acc = quiet_nan();");
    } else {
      line("acc = {}(acc);", function);
      if (dtype == DType::u8) line("acc &= 0xffu;");
    }
    if (options_.exact_subgroup_size && variant_.lanes == options_.subgroup_size) return;
  }
  uses_shared_ = true;
  const bool boolean = dtype == DType::boolean;
  line("part[gl_LocalInvocationID.x] = {};", boolean ? "acc ? 1u : 0u" : "acc");
  line("barrier();");
  line("if (gl_LocalInvocationID.x == 0u) {{");
  open();
  line("for (uint l = {0}; l < {1}u; l += {0}) {{", subgroups ? "gl_SubgroupSize" : "1u", variant_.lanes);
  open();
  line("const {} other = part[l]{};", type, boolean ? " != 0u" : "");
  line("acc = {};", glsl_combine(combine, dtype, "acc", "other", calls_));
  close();
  close();
  line("barrier();  // before the next output overwrites the parts");
}

void ShaderWriter::reduce() {
  const DType dtype = kernel_.code[kernel_.outputs[0].value].type;
  const std::string type(glsl_type(dtype));
  const bool group = variant_.form == RegionForm::reduce_per_group;
  const int kept = kept_rank();
  if (group) {
    line("for (uint n = gl_WorkGroupID.x; n < points; n += gl_NumWorkGroups.x) {{");
  } else {
    line("const uint stride = gl_NumWorkGroups.x * {}u;", variant_.lanes);
    line("for (uint n = gl_GlobalInvocationID.x; n < points; n += stride) {{");
  }
  open();
  coordinates("n", 0, kept);
  offsets(Part::kept, "n");
  use_type(dtype);
  line("{} acc = {};", type, glsl_identity(*kernel_.reduce, dtype, calls_));
  const bool blocked = *kernel_.reduce == Combine::sum && dtype == DType::f32;
  if (blocked) line("float total = 0.0;");
  if (blocked) line("uint count = 0u;");
  if (group) {
    line("for (uint r = gl_LocalInvocationID.x; r < reduced; r += {}u) {{", variant_.lanes);
    open();
    coordinates("r", kept, variant_.rank);
    offsets(Part::reduced, "r");
    evaluate();
    accumulate();
    close();
  } else {
    line("uint r = 0u;");
    for (int d = kept; d < variant_.rank; ++d) {
      line("for (int c{0} = 0; c{0} < d{0}; ++c{0}) {{", d);
      open();
    }
    if (kept == variant_.rank) {
      line("{{");
      open();
    }
    offsets(Part::reduced, "r");
    evaluate();
    accumulate();
    line("++r;");
    for (int d = kept; d < variant_.rank; ++d) close();
    if (kept == variant_.rank) close();
  }
  if (blocked) line("acc += total;");
  if (group) combine_lanes(type.c_str());
  if (group) {
    line("if (gl_LocalInvocationID.x == 0u) {{");
    open();
  }
  store(0, "acc", dtype, fmt::format("k{}", inputs() + kernel_.index_count));
  if (group) close();
  close();
}

std::string ShaderWriter::write() {
  for (DType t : kernel_.inputs) use_type(t);
  for (const Kernel::Output& o : kernel_.outputs) use_type(o.type);
  for (int k = 0; k < operands(); ++k) {
    if (is_index(k)) continue;
    glsl_type(memory_type(k));  // refuses types without a kernel
    uses_bytes_ |= memory_type(k) == DType::u8 || memory_type(k) == DType::boolean;
  }
  load_arguments();
  hoist();
  if (kernel_.reduce)
    reduce();
  else
    elementwise();

  std::string text = "// " + kernel_.name + '\n';
  head(text);
  std::set<std::string, std::less<>> done;
  for (const std::string& call : calls_) append_glsl_function(call, done, text);
  text += "void main() {\n" + body_ + "}\n";
  return text;
}

}  // namespace

Hash128 KernelVariant::hash() const {
  Hash128 h;
  h.mix(static_cast<std::uint64_t>(form) | std::uint64_t{rank} << 8 | std::uint64_t{reduce_rank} << 16 |
        std::uint64_t{lanes} << 24);
  h.mix(access.size());
  for (Access a : access) h.mix(static_cast<std::uint64_t>(a));
  return h;
}

ArgumentLayout argument_layout(const Kernel& kernel, const KernelVariant& variant) {
  const int inputs = static_cast<int>(kernel.inputs.size());
  const int outputs = static_cast<int>(kernel.outputs.size());
  ArgumentLayout layout;
  layout.slots = inputs + outputs + static_cast<int>(kernel.scalars.size());
  layout.integers = 2 + variant.rank;
  for (int k = 0; k < inputs + kernel.index_count + outputs; ++k) {
    const bool index = k >= inputs && k < inputs + kernel.index_count;
    const bool output = k >= inputs + kernel.index_count;
    const bool strided = variant.access[static_cast<std::size_t>(k)] == Access::strided;
    if (index || strided) layout.integers += 1;
    if (strided)
      layout.integers += kernel.reduce && output ? variant.rank - variant.reduce_rank : variant.rank;
  }
  return layout;
}

std::string to_glsl(const Kernel& kernel, const KernelVariant& variant, const GlslOptions& options) {
  return ShaderWriter(kernel, variant, options).write();
}

}  // namespace caldera
