#include "engine/device/vulkan/glsl/epilogue.h"

#include "engine/device/vulkan/glsl/evaluate.h"

namespace caldera {
namespace {

GlslOperands::Shape operands_shape(const Kernel& kernel, const GlslEpilogue::Shape& shape,
                                   std::string_view name) {
  GlslOperands::Shape s;
  s.access.assign(static_cast<std::size_t>(shape.parameters), Access::scalar);
  s.access.insert(s.access.end(), shape.access.begin(), shape.access.end());
  if (shape.returns) s.access.resize(s.access.size() + kernel.outputs.size(), Access::scalar);
  s.rank = shape.rank;
  s.prefix = std::string(name) + '_';
  s.parameters = shape.parameters;
  s.without_outputs = shape.returns;
  return s;
}

}  // namespace

Hash128 GlslEpilogue::Shape::hash() const {
  Hash128 h;
  h.mix(static_cast<std::uint64_t>(rank) | static_cast<std::uint64_t>(parameters) << 8 |
        static_cast<std::uint64_t>(returns) << 16 | static_cast<std::uint64_t>(access.size()) << 24);
  for (Access a : access) h.mix(static_cast<std::uint64_t>(a));
  return h;
}

GlslEpilogue::GlslEpilogue(const Kernel& kernel, const Shape& shape, std::string_view name,
                           const GlslOptions& options)
    : operands_(kernel, operands_shape(kernel, shape, name), options) {
  GlslBody body;
  GlslEvaluator evaluator(kernel, operands_, body);

  std::vector<std::uint16_t> roots;
  for (const Kernel::Output& o : kernel.outputs) roots.push_back(o.value);
  const std::vector<bool> wanted = evaluator.needed(roots);
  std::vector<bool> used = evaluator.operands_of(wanted);
  for (int k = 0; k < operands_.count(); ++k)
    used[static_cast<std::size_t>(k)] =
        operands_.is_there(k) && (used[static_cast<std::size_t>(k)] || operands_.is_output(k));
  for (int k = 0; k < operands_.count(); ++k) {
    if (!used[static_cast<std::size_t>(k)]) continue;
    std::string text = operands_.has_bias(k) ? fmt::format("{}b{}", operands_.prefix(), k) : "0";
    for (int d = 0; d < operands_.strides(k); ++d)
      text += fmt::format(" + c{} * {}t{}_{}", d, operands_.prefix(), k, d);
    body.line("const int o{} = {};", k, text);
  }
  evaluator.hoist();
  evaluator.evaluate(wanted);
  std::string_view result = "void";
  if (shape.returns) {
    const Kernel::Output& output = kernel.outputs.at(0);
    const GlslValue value = evaluator.value(output.value);
    body.needs.value(output.type);
    body.line("return {};", glsl_convert(value, output.type, body.needs.calls));
    result = glsl_type(output.type);
  } else {
    for (int o = 0; o < static_cast<int>(kernel.outputs.size()); ++o)
      evaluator.store(o, evaluator.value(kernel.outputs[static_cast<std::size_t>(o)].value),
                      fmt::format("o{}", operands_.output(o)));
  }

  std::string parameters;
  for (int x = 0; x < shape.parameters; ++x) {
    const DType type = compute_type(kernel.inputs[static_cast<std::size_t>(x)]);
    body.needs.value(type);
    parameters += fmt::format("{}{} x{}", parameters.empty() ? "" : ", ", glsl_type(type), x);
  }
  for (int d = 0; d < shape.rank; ++d)
    parameters += fmt::format("{}int c{}", parameters.empty() ? "" : ", ", d);
  function_ =
      operands_.declarations() + fmt::format("{} {}({}) {{\n{}}}\n", result, name, parameters, body.text());
  needs_ = body.needs;
}

std::string GlslEpilogue::load(std::string_view block) const {
  GlslBody body;
  operands_.load(block, body);
  return body.text();
}

}  // namespace caldera
