#include "engine/device/vulkan/glsl/expression.h"

#include <fmt/core.h>

#include "engine/base/error.h"
#include "engine/device/vulkan/glsl/types.h"

namespace caldera {
namespace {

[[noreturn]] void refuse(std::string_view op, DType type) {
  throw DTypeError(
      fmt::format("{}: not available for {} on Vulkan; use float32, or the CPU device", op, name(type)));
}

bool is_floating_register(DType t) { return t == DType::f32 || t == DType::f64; }

std::string zero(DType type) { return std::string(glsl_register(type).zero); }
std::string one(DType type) { return std::string(glsl_register(type).one); }

std::string call(GlslCalls& calls, std::string_view function, const std::string& a) {
  calls.emplace(function);
  return fmt::format("{}({})", function, a);
}

std::string call(GlslCalls& calls, std::string_view function, const std::string& a, const std::string& b) {
  calls.emplace(function);
  return fmt::format("{}({}, {})", function, a, b);
}

/// u8 lives in a 32-bit register: arithmetic is brought back into its range.
std::string wrapped(DType type, std::string text) {
  return type == DType::u8 ? fmt::format("(({}) & 0xffu)", text) : fmt::format("({})", text);
}

std::string unary(ScalarOp op, DType type, const std::string& x, GlslCalls& calls) {
  const bool floating = is_floating_register(type);
  switch (op) {
    case ScalarOp::neg:
      return wrapped(type, type == DType::u8 ? "0u - " + x : "-" + x);
    case ScalarOp::abs:
      return type == DType::u8 ? x : fmt::format("abs({})", x);
    case ScalarOp::sign:
      if (type == DType::u8) return fmt::format("min({}, 1u)", x);
      if (!floating) return fmt::format("sign({})", x);
      return fmt::format("({}({}) ? {} : sign({}))", type == DType::f32 ? "is_nan" : "is_nan_d", x, x, x);
    case ScalarOp::floor:
      return floating ? fmt::format("floor({})", x) : x;
    case ScalarOp::ceil:
      return floating ? fmt::format("ceil({})", x) : x;
    case ScalarOp::round:
      // Quirk: of float64 the built-in one takes 1.5 to 1 on some drivers.
      if (type == DType::f64) return call(calls, "d_round", x);
      return floating ? fmt::format("roundEven({})", x) : x;
    case ScalarOp::trunc:
      if (type == DType::f64) return call(calls, "d_trunc", x);
      return floating ? fmt::format("trunc({})", x) : x;
    case ScalarOp::sqrt:
      if (floating) return fmt::format("sqrt({})", x);
      break;
    case ScalarOp::rsqrt:
      if (floating) return fmt::format("({} / sqrt({}))", one(type), x);
      break;
    case ScalarOp::bit_not:
      if (!floating) return wrapped(type, "~" + x);
      break;
    case ScalarOp::reciprocal:
      if (floating) return fmt::format("({} / {})", one(type), x);
      break;
    case ScalarOp::round_f16:
      if (type == DType::f32) return call(calls, "round_float16", x);
      break;
    case ScalarOp::round_bf16:
      if (type == DType::f32) return call(calls, "from_bfloat16", call(calls, "to_bfloat16", x));
      break;
    default:
      if (floating && is_elementary(op))  // the library has it, as f_<name> and d_<name>
        return call(calls, fmt::format("{}_{}", type == DType::f32 ? 'f' : 'd', info(op).name), x);
  }
  refuse(info(op).name, type);
}

/// The count is taken as an unsigned number: what is negative counts as too many.
std::string shift(ScalarOp op, DType type, const std::string& x, const std::string& y) {
  const std::string count = fmt::format("{}({})", type == DType::i64 ? "uint64_t" : "uint", y);
  const auto bits = static_cast<int>(8 * size_of(type));
  const std::string last = fmt::format("{}u{}", bits - 1, type == DType::i64 ? "l" : "");
  if (op == ScalarOp::shift_right && !is_unsigned(type))
    return fmt::format("({} >> int(min({}, {})))", x, count, last);
  return wrapped(type, fmt::format("{} > {} ? {} : {} {} int({})", count, last, zero(type), x,
                                   op == ScalarOp::shift_left ? "<<" : ">>", y));
}

/// What an integer type of memory holds of a value, in the register that it is computed in.
std::string narrowed(DType memory, const GlslValue& value, GlslCalls& calls) {
  const TypeFacts& type = facts(memory);
  const std::string x = glsl_convert(value, type.computed, calls);
  const bool wide = type.computed == DType::i64;
  if (is_floating_register(value.type)) {  // saturated at the limits of the register's type by now
    const char* suffix = wide ? "l" : "";
    return fmt::format("max(min({}, {}{}), {}{})", x, type.highest, suffix, type.lowest, suffix);
  }
  if (wide) return fmt::format("({} & {}l)", x, type.highest);
  const int unused = 32 - 8 * static_cast<int>(type.bytes);
  return fmt::format("(({} << {}) >> {})", x, unused, unused);
}

std::string arithmetic(ScalarOp op, DType type, const std::string& x, const std::string& y,
                       GlslCalls& calls) {
  const bool f32 = type == DType::f32, f64 = type == DType::f64, i64 = type == DType::i64,
             u8 = type == DType::u8;
  if (type == DType::boolean) {
    if (op == ScalarOp::add || op == ScalarOp::maximum) return fmt::format("({} || {})", x, y);
    if (op == ScalarOp::mul || op == ScalarOp::minimum) return fmt::format("({} && {})", x, y);
    refuse(info(op).name, type);
  }
  switch (op) {
    case ScalarOp::add:
      return wrapped(type, x + " + " + y);
    case ScalarOp::sub:
      return wrapped(type, x + " - " + y);
    case ScalarOp::mul:
      return wrapped(type, x + " * " + y);
    case ScalarOp::div:
      if (f32) return call(calls, "f_div", x, y);
      if (f64) return fmt::format("({} / {})", x, y);
      break;
    case ScalarOp::floor_div:
      if (f32 || f64) return call(calls, f32 ? "f_floor_div" : "d_floor_div", x, y);
      if (u8) return fmt::format("({} == 0u ? 0u : {} / max({}, 1u))", y, x, y);
      return call(calls, i64 ? "l_floor_div" : "i_floor_div", x, y);
    case ScalarOp::remainder:
      if (f32 || f64) return call(calls, f32 ? "f_remainder" : "d_remainder", x, y);
      if (u8) return fmt::format("({} == 0u ? 0u : {} % max({}, 1u))", y, x, y);
      return call(calls, i64 ? "l_remainder" : "i_remainder", x, y);
    case ScalarOp::pow:
      if (f32 || f64) return call(calls, f32 ? "f_pow" : "d_pow", x, y);
      if (u8) return wrapped(type, "uint(" + call(calls, "i_pow", "int(" + x + ")", "int(" + y + ")") + ")");
      return call(calls, i64 ? "l_pow" : "i_pow", x, y);
    case ScalarOp::maximum:
    case ScalarOp::minimum: {
      const bool is_max = op == ScalarOp::maximum;
      if (f32) return call(calls, is_max ? "max_nan" : "min_nan", x, y);
      if (f64) return call(calls, is_max ? "max_nan_d" : "min_nan_d", x, y);
      return fmt::format("{}({}, {})", is_max ? "max" : "min", x, y);
    }
    case ScalarOp::atan2:
      if (f32 || f64) return call(calls, f32 ? "f_atan2" : "d_atan2", x, y);
      break;
    case ScalarOp::copysign:
      if (f32 || f64) return call(calls, f32 ? "f_copysign" : "d_copysign", x, y);
      break;
    case ScalarOp::gamma_weight:
    case ScalarOp::gamma_series:
    case ScalarOp::gamma_fraction:
      if (f32 || f64) return call(calls, fmt::format("{}_{}", f32 ? "f" : "d", info(op).name), x, y);
      break;
    case ScalarOp::bit_and:
      return fmt::format("({} & {})", x, y);
    case ScalarOp::bit_or:
      return fmt::format("({} | {})", x, y);
    case ScalarOp::bit_xor:
      return fmt::format("({} ^ {})", x, y);
    case ScalarOp::shift_left:
    case ScalarOp::shift_right:
      return shift(op, type, x, y);
    default:
      break;
  }
  refuse(info(op).name, type);
}

std::string comparison(ScalarOp op, const GlslValue& a, const GlslValue& b) {
  std::string x = a.text, y = b.text;
  const bool equality = op == ScalarOp::equal || op == ScalarOp::not_equal;
  if (a.type == DType::boolean && !equality) {  // GLSL orders no booleans
    x = "int(" + x + ")";
    y = "int(" + y + ")";
  }
  const char* sign = op == ScalarOp::equal        ? "=="
                     : op == ScalarOp::not_equal  ? "!="
                     : op == ScalarOp::less       ? "<"
                     : op == ScalarOp::less_equal ? "<="
                     : op == ScalarOp::greater    ? ">"
                                                  : ">=";
  return fmt::format("({} {} {})", x, sign, y);
}

}  // namespace

std::string_view glsl_type(DType type) { return glsl_register(type).value; }

std::string glsl_convert(const GlslValue& value, DType to, GlslCalls& calls) {
  const DType from = value.type;
  const std::string& x = value.text;
  if (from == to) return x;
  if (to == DType::boolean) return fmt::format("({} != {})", x, zero(from));
  if (from == DType::boolean) return fmt::format("({} ? {} : {})", x, one(to), zero(to));
  if (is_floating_register(from) && is_integral(to)) {
    return call(calls,
                fmt::format("{}_to_{}", from == DType::f32 ? "f" : "d",
                            to == DType::i32   ? "i32"
                            : to == DType::i64 ? "i64"
                                               : "u8"),
                x);
  }
  if (to == DType::u8) return fmt::format("(uint({}) & 0xffu)", x);
  return fmt::format("{}({})", glsl_type(to), x);
}

std::string glsl_expression(ScalarOp op, DType type, const GlslValue& a, const GlslValue& b,
                            const GlslValue& c, GlslCalls& calls) {
  if (const auto memory = narrowed_to(op); memory && is_integral(*memory)) return narrowed(*memory, a, calls);
  switch (op) {
    case ScalarOp::cast:
      return glsl_convert(a, type, calls);
    case ScalarOp::isnan:
      if (!is_floating_register(a.type)) return "false";
      return call(calls, a.type == DType::f32 ? "is_nan" : "is_nan_d", a.text);
    case ScalarOp::logical_not:
      return "(!" + glsl_convert(a, DType::boolean, calls) + ")";
    case ScalarOp::logical_and:
    case ScalarOp::logical_or:
    case ScalarOp::logical_xor:
      return fmt::format("({} {} {})", glsl_convert(a, DType::boolean, calls),
                         op == ScalarOp::logical_and  ? "&&"
                         : op == ScalarOp::logical_or ? "||"
                                                      : "^^",
                         glsl_convert(b, DType::boolean, calls));
    case ScalarOp::select:
      return fmt::format("({} ? {} : {})", glsl_convert(a, DType::boolean, calls),
                         glsl_convert(b, type, calls), glsl_convert(c, type, calls));
    default:
      break;
  }
  if (info(op).gives_boolean) {
    const DType common = a.type == b.type ? a.type : promote(a.type, b.type);
    return comparison(op, {glsl_convert(a, common, calls), common}, {glsl_convert(b, common, calls), common});
  }
  const std::string x = glsl_convert(a, type, calls);
  if (info(op).arity == 1) {
    if (op == ScalarOp::sign && is_floating_register(type))
      calls.emplace(type == DType::f32 ? "is_nan" : "is_nan_d");
    return unary(op, type, x, calls);
  }
  return arithmetic(op, type, x, glsl_convert(b, type, calls), calls);
}

std::string glsl_identity(Combine combine, DType type, GlslCalls& calls) {
  const GlslTypeFacts& constants = glsl_register(type);
  const bool extreme = combine == Combine::maximum || combine == Combine::minimum;
  if (extreme && type == DType::f32) calls.emplace("constants");
  switch (combine) {
    case Combine::sum:
      return std::string(constants.zero);
    case Combine::product:
      return std::string(constants.one);
    case Combine::maximum:
      return std::string(constants.lowest);
    case Combine::minimum:
      return std::string(constants.highest);
  }
  refuse("reduction", type);
}

std::string glsl_combine(Combine combine, DType type, const std::string& a, const std::string& b,
                         GlslCalls& calls) {
  return arithmetic(facts(combine).function, type, a, b, calls);
}

}  // namespace caldera
