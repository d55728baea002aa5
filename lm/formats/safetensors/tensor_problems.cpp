#include "lm/formats/safetensors/tensor_problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>

#include "engine/base/error.h"

namespace caldera::detail {
namespace {

constexpr std::size_t kMostLines = 4;

}  // namespace

void TensorProblems::missing(const std::string& name, const Shape& expected) {
  lines_.push_back(fmt::format("tensor {} {} is missing", name, expected.to_string()));
}

void TensorProblems::unexpected(const std::string& name) {
  lines_.push_back(fmt::format("tensor {} is unexpected", name));
}

void TensorProblems::check(const std::string& name, const Shape& expected, const Shape& found,
                           bool is_floating, std::string_view type) {
  if (found != expected)
    lines_.push_back(
        fmt::format("tensor {} has shape {}, expected {}", name, found.to_string(), expected.to_string()));
  else if (!is_floating)
    lines_.push_back(fmt::format("tensor {} is {}, expected a floating type", name, type));
}

void TensorProblems::check(const std::string& name, const Shape& expected, const TensorInfo& found) {
  check(name, expected, found.shape, is_floating(found.dtype), caldera::name(found.dtype));
}

void TensorProblems::throw_if_any(const std::string& where) const {
  if (lines_.empty()) return;
  std::string message = where + ": ";
  for (std::size_t i = 0; i < std::min(kMostLines, lines_.size()); ++i)
    message += (i == 0 ? "" : "; ") + lines_[i];
  if (lines_.size() > kMostLines) message += fmt::format("; and {} more", lines_.size() - kMostLines);
  throw FileError(message);
}

}  // namespace caldera::detail
