#include "lm/chat/template/chat_template.h"

#include <ctime>
#include <new>
#include <stdexcept>

#include "lm/chat/template/base/unicode.h"
#include "lm/chat/template/filters/filters.h"
#include "lm/chat/template/interpreter.h"
#include "lm/chat/template/syntax/parser.h"
#include "lm/chat/template/value/json_text.h"

namespace caldera {
namespace {

chat::LocalTime local_now() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  std::tm local{};
  localtime_r(&seconds, &local);
  const auto fraction =
      std::chrono::floor<std::chrono::microseconds>(now.time_since_epoch()) % std::chrono::seconds(1);
  const auto day =
      std::chrono::local_days(std::chrono::year(local.tm_year + 1900) /
                              static_cast<unsigned>(local.tm_mon + 1) / static_cast<unsigned>(local.tm_mday));
  return day + std::chrono::hours(local.tm_hour) + std::chrono::minutes(local.tm_min) +
         std::chrono::seconds(local.tm_sec) + fraction;
}

chat::Interpreter::Variables variables_of(const ChatTemplateInput& input) {
  chat::Interpreter::Variables variables;
  variables["messages"] = chat::value_from_json(input.messages);
  variables["tools"] = chat::value_from_json(input.tools);
  variables["documents"] = chat::value_from_json(input.documents);
  variables["add_generation_prompt"] = input.add_generation_prompt;
  if (input.bos_token) variables["bos_token"] = *input.bos_token;
  if (input.eos_token) variables["eos_token"] = *input.eos_token;
  if (!input.variables.is_object() && !input.variables.is_null())
    chat::fail("the variables are not a JSON object");
  for (const auto& [name, value] : input.variables.items()) variables[name] = chat::value_from_json(value);
  return variables;
}

/// The spans of a text with their places in code points.
std::vector<ChatSpan> counted(std::string_view text, const std::vector<chat::ByteSpan>& spans) {
  std::vector<ChatSpan> out;
  std::size_t at = 0;
  std::size_t characters = 0;
  const auto advance = [&](std::size_t to) {
    characters += chat::code_point_count(text.substr(at, to - at));
    at = to;
    return characters;
  };
  for (const chat::ByteSpan& span : spans) {
    const std::size_t first = advance(span.begin);
    out.push_back({span.begin, span.end, first, advance(span.end)});
  }
  return out;
}

}  // namespace

ChatTemplate::ChatTemplate(const std::string& source, const ChatTemplateLimits& limits) : limits_(limits) {
  auto program = std::make_shared<const chat::Program>(chat::parse_program(source, limits));
  for (const chat::Use& use : program->uses) {
    const bool known =
        use.is_test ? chat::find_test(use.name) != nullptr : chat::find_filter(use.name) != nullptr;
    if (!known) {
      throw ChatTemplateError(
          std::string("No ") + (use.is_test ? "test" : "filter") + " named '" + use.name + "'", use.at.line,
          use.at.column);
    }
  }
  program_ = std::move(program);
}

RenderedChat ChatTemplate::render(const ChatTemplateInput& input) const {
  chat::Budget budget(limits_);
  const chat::Budget::Use use(budget);
  chat::Position at;
  try {
    const chat::Interpreter::Variables variables = variables_of(input);
    chat::Interpreter interpreter(*program_, budget, variables, input.now.value_or(local_now()));
    try {
      chat::TextBuilder out;
      interpreter.run(out);
      RenderedChat rendered;
      rendered.generation = counted(out.bytes(), out.spans());
      rendered.text = out.take();
      return rendered;
    } catch (...) {
      at = interpreter.position();
      throw;
    }
  } catch (const chat::Refusal& refusal) {
    throw ChatTemplateRefusal(refusal.message, at.line, at.column);
  } catch (const chat::Fault& fault) {
    throw ChatTemplateError(fault.message, at.line, at.column);
  } catch (const std::bad_alloc&) {
    throw ChatTemplateError("there is not enough memory", at.line, at.column);
  } catch (const std::length_error&) {
    throw ChatTemplateError("a text would be too long", at.line, at.column);
  }
}

}  // namespace caldera
