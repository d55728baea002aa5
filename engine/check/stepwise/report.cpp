#include "engine/check/stepwise/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "engine/explain/explained_plan.h"

namespace caldera::check {
namespace {

using reference::Number;

/// The words of the process's command, as a shell takes them; a placeholder where the system does not tell.
std::string command_line() {
  std::ifstream in("/proc/self/cmdline", std::ios::binary);
  std::string words((std::istreambuf_iterator<char>(in)), {});
  if (words.empty()) return "PROGRAM ARGUMENTS";
  std::string line;
  for (std::size_t begin = 0; begin < words.size();) {
    const std::size_t end = std::min(words.find('\0', begin), words.size());
    std::string word = words.substr(begin, end - begin);
    begin = end + 1;
    constexpr const char* kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=/.,:@%";
    if (word.empty() || word.find_first_not_of(kPlain) != std::string::npos) {
      for (std::size_t at = word.find('\''); at != std::string::npos; at = word.find('\'', at + 4))
        word.replace(at, 1, "'\\''");
      word.insert(0, 1, '\'').push_back('\'');
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return line;
}

/// The first values, and of floating types how many are not finite.
std::string values_of(const std::vector<std::byte>& bytes, DType type) {
  constexpr std::int64_t kShown = 6;
  const auto elements = static_cast<std::int64_t>(bytes.size() / size_of(type));
  std::string text;
  std::int64_t odd = 0;
  for (std::int64_t i = 0; i < elements; ++i) {
    const Number number = reference::read_number(bytes, type, i);
    if (i < kShown) text += (i == 0 ? "" : " ") + reference::to_text(type, number);
    odd += is_floating(type) && !std::isfinite(number.f) ? 1 : 0;
  }
  if (elements > kShown) text += fmt::format(" ... ({} elements)", elements);
  if (odd > 0) text += fmt::format(", {} of them NaN or infinite", odd);
  return text;
}

}  // namespace

std::string summary(const CheckedStep& checked, const Deviation& deviation) {
  const Step& step = checked.plan.steps[checked.step];
  const PlanBuffer& buffer = checked.plan.buffers[deviation.buffer];
  return fmt::format(
      "evaluation {}, step {} of {}{}: {} {} on {}: {} of {} elements are beyond their bound of the f64 "
      "interpreter; the worst, element {}: got {}, want {}, bound {:.3g}",
      checked.evaluation, checked.number, checked.step_count, checked.within, step.name(),
      step.dims.to_string(), checked.plan.device.to_string(), deviation.count,
      buffer.bytes / static_cast<std::int64_t>(size_of(buffer.dtype)), deviation.element,
      reference::to_text(buffer.dtype, deviation.got), reference::to_text(buffer.dtype, deviation.want),
      deviation.bound);
}

std::string details(const CheckedStep& checked, const reference::PlanMemory& memory) {
  const Step& step = checked.plan.steps[checked.step];
  std::string text;
  for (std::size_t k = 0; k < step.operands.size(); ++k) {
    const Operand& operand = step.operands[k];
    const bool is_output = k >= step.first_output();
    if (operand.buffer < 0) {
      text += fmt::format("  operand {:<3} index   offset {} strides {}\n", k, operand.offset,
                          Shape(operand.strides).to_string());
      continue;
    }
    const auto b = static_cast<std::size_t>(operand.buffer);
    const DType type = checked.plan.buffers[b].dtype;
    text += fmt::format("  operand {:<3} {:<6} {:<5} offset {} strides {}: {}\n", k, is_output ? "out" : "in",
                        name(type), operand.offset, Shape(operand.strides).to_string(),
                        values_of(memory.buffers[b], type));
  }
  for (const GeneratedCode& piece : generated_code(step, checked.code))
    text += fmt::format("  ---- {} ----\n{}\n", piece.title, piece.text);
  text +=
      fmt::format("  alone: CALDERA_CHECK={}.{} {}\n", checked.evaluation, checked.number, command_line());
  return text;
}

}  // namespace caldera::check
