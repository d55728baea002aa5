#include "engine/device/vulkan/glsl/evaluate.h"

#include <utility>

#include "engine/base/error.h"
#include "engine/device/vulkan/glsl/memory.h"
#include "engine/device/vulkan/glsl/types.h"

namespace caldera {

std::vector<std::uint16_t> value_operands(const Kernel& kernel, const Instruction& i) {
  std::vector<std::uint16_t> list;
  const int arity = info(i.op).arity;
  const bool random = i.op == ScalarOp::philox_uniform || i.op == ScalarOp::philox_normal;
  // A seed that is an argument is read from there as two words, so that it needs no 64-bit integers.
  const bool seed_in_place = random && kernel.code[i.a].op == ScalarOp::scalar;
  if (arity >= 1 && !seed_in_place) list.push_back(i.a);
  if (arity >= 2) list.push_back(i.b);
  if (arity >= 3) list.push_back(i.c);
  return list;
}

GlslEvaluator::GlslEvaluator(const Kernel& kernel, const GlslOperands& operands, GlslBody& body,
                             const GlslNeighbours* neighbours)
    : kernel_(kernel), operands_(operands), body_(body), neighbours_(neighbours) {
  for (int k = 0; k < operands.count(); ++k) {
    if (operands.has_memory(k)) body.needs.memory(operands.memory_type(k));
  }
}

bool GlslEvaluator::same_everywhere(std::size_t v) const {
  const Instruction& i = kernel_.code[v];
  if (i.op == ScalarOp::scalar) return true;
  return (i.op == ScalarOp::load || i.op == ScalarOp::load_row) && operands_.is_there(i.a) &&
         operands_.access(i.a) == Access::scalar;
}

void GlslEvaluator::hoist() {
  std::vector<bool> used(kernel_.code.size());
  for (const Instruction& i : kernel_.code) {
    for (std::uint16_t v : value_operands(kernel_, i)) used[v] = true;
  }
  for (const Kernel::Output& o : kernel_.outputs) used[o.value] = true;
  for (std::size_t v = 0; v < kernel_.code.size(); ++v) {
    if (!used[v] || !same_everywhere(v)) continue;
    const Instruction& i = kernel_.code[v];
    body_.needs.value(i.type);
    body_.line("const {} v{} = {};", glsl_type(i.type), v,
               i.op == ScalarOp::scalar ? scalar(i.a, i.type) : load(i.a, "0", i.type));
  }
}

std::vector<bool> GlslEvaluator::needed(const std::vector<std::uint16_t>& roots) const {
  std::vector<bool> marked(kernel_.code.size());
  const auto mark = [&](std::uint16_t v) { marked[v] = marked[v] || !same_everywhere(v); };
  for (std::uint16_t v : roots) mark(v);
  // Operands stand before what they are used by.
  for (std::size_t v = kernel_.code.size(); v-- > 0;) {
    if (!marked[v]) continue;
    for (std::uint16_t operand : value_operands(kernel_, kernel_.code[v])) mark(operand);
  }
  return marked;
}

std::vector<bool> GlslEvaluator::operands_of(const std::vector<bool>& wanted) const {
  std::vector<bool> used(static_cast<std::size_t>(operands_.count()));
  for (std::size_t v = 0; v < kernel_.code.size(); ++v) {
    if (!wanted[v]) continue;
    const Instruction& i = kernel_.code[v];
    if (i.op == ScalarOp::load) used[i.a] = true;
    if (i.op == ScalarOp::index) used[static_cast<std::size_t>(operands_.index_operand(i.a))] = true;
  }
  return used;
}

void GlslEvaluator::evaluate(const std::vector<bool>& wanted) {
  for (std::size_t v = 0; v < kernel_.code.size(); ++v) {
    if (!wanted[v]) continue;
    const Instruction& i = kernel_.code[v];
    body_.needs.value(i.type);
    const std::string text = text_of(i);
    body_.line("const {} v{} = {};", glsl_type(i.type), v, text);
  }
}

void GlslEvaluator::evaluate_once(std::vector<bool>& wanted) {
  std::vector<bool> once(wanted.size());
  for (std::size_t v = 0; v < wanted.size(); ++v) {
    const Instruction& i = kernel_.code[v];
    once[v] = wanted[v] && i.op == ScalarOp::load && neighbours_->one(i.a);
    if (once[v]) wanted[v] = false;
  }
  evaluate(once);
}

std::string GlslEvaluator::text_of(const Instruction& i) {
  GlslCalls& calls = body_.needs.calls;
  switch (i.op) {
    case ScalarOp::load:
      if (!operands_.is_there(i.a))
        return glsl_convert({fmt::format("x{}", i.a), compute_type(kernel_.inputs[i.a])}, i.type, calls);
      return load(i.a, fmt::format("o{}", i.a), i.type);
    case ScalarOp::load_row:
      return load(i.a, fmt::format("k{}", i.a), i.type);
    case ScalarOp::scalar:
      return scalar(i.a, i.type);
    case ScalarOp::index:
      return glsl_convert({fmt::format("o{}", operands_.index_operand(i.a)), DType::i32}, i.type, calls);
    case ScalarOp::philox_uniform:
    case ScalarOp::philox_normal:
      return random(i);
    default: {
      const int arity = info(i.op).arity;
      return glsl_expression(i.op, i.type, value(i.a), arity >= 2 ? value(i.b) : GlslValue{},
                             arity >= 3 ? value(i.c) : GlslValue{}, calls);
    }
  }
}

std::string GlslEvaluator::load(int operand, const std::string& offset, DType to) {
  const DType from = kernel_.inputs[static_cast<std::size_t>(operand)];
  const std::string memory = fmt::format("{}p{}", operands_.prefix(), operand);
  GlslCalls& calls = body_.needs.calls;
  if (neighbours_ != nullptr && neighbours_->together(operand))
    return glsl_convert({neighbours_->value(operand, calls), compute_type(from)}, to, calls);
  return glsl_convert({glsl_load(from, memory, offset, operands_.options(), calls), compute_type(from)}, to,
                      calls);
}

std::string GlslEvaluator::scalar(int number, DType to) {
  const DType from = kernel_.scalars[static_cast<std::size_t>(number)];
  const std::string words = fmt::format("{}s{}", operands_.prefix(), number);
  std::string text = fmt::format(fmt::runtime(glsl_register(from).argument), words);
  body_.needs.value(from);
  return glsl_convert({std::move(text), from}, to, body_.needs.calls);
}

std::string GlslEvaluator::random(const Instruction& i) {
  GlslCalls& calls = body_.needs.calls;
  if (i.type != DType::f32 && i.type != DType::f64)
    throw DTypeError(fmt::format("{}: not available for {} on Vulkan", info(i.op).name, name(i.type)));
  const Instruction& seed = kernel_.code[i.a];
  std::string key;
  if (seed.op == ScalarOp::scalar) {
    key = fmt::format("{}s{}", operands_.prefix(), seed.a);
  } else {
    key = fmt::format("uvec2(unpackInt2x32({}))", glsl_convert(value(i.a), DType::i64, calls));
    body_.needs.int64 = true;
  }
  std::string function(info(i.op).name);
  if (i.type == DType::f64) function += "_d";
  calls.insert(function);
  return fmt::format("{}({}, uint({}))", function, key, glsl_convert(value(i.b), DType::i32, calls));
}

void GlslEvaluator::store(int output, const GlslValue& value, const std::string& offset) {
  const int k = operands_.output(output);
  const DType to = operands_.memory_type(k);
  GlslCalls& calls = body_.needs.calls;
  if (neighbours_ != nullptr && neighbours_->together(k)) {
    body_.line("{};", neighbours_->set(k, glsl_convert(value, compute_type(to), calls), calls));
    return;
  }
  body_.line("{};", glsl_store(to, fmt::format("{}p{}", operands_.prefix(), k), offset,
                               glsl_convert(value, compute_type(to), calls), operands_.options(), calls));
}

}  // namespace caldera
