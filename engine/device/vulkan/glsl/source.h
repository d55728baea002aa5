// The text of a shader while it is written: lines of code, and what has to stand ahead of them.
#pragma once

#include <fmt/core.h>

#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "engine/device/vulkan/glsl/needs.h"
#include "engine/device/vulkan/glsl/variant.h"

namespace caldera {

/// `#version`, extensions and execution modes, and the types of memory (memory.h): `Floats`, `Ints` and where
/// they are needed `Bytes`, `Halves` (the bits of 16-bit types), `Longs`, `Doubles`, each a buffer reference
/// with the one member `v[]`.
void append_glsl_preamble(const GlslNeeds& needs, const GlslOptions& options, std::string& out);
/// The library functions that are called, each after those it calls.
void append_glsl_functions(const GlslNeeds& needs, std::string& out);

/// Statements, indented.
class GlslBody {
 public:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    // Not fmt::format_to, which compiles all of fmt's formatting into every unit that calls it.
    append_line(fmt::format(format, std::forward<Args>(args)...));
  }
  /// A line that ends in an opening brace.
  template <class... Args>
  void open(fmt::format_string<Args...> format, Args&&... args) {
    line(format, std::forward<Args>(args)...);
    ++depth_;
  }
  void close() {
    --depth_;
    line("}}");
  }

  const std::string& text() const { return text_; }
  GlslNeeds needs;

 private:
  void append_line(std::string_view line) {
    text_.append(2 * static_cast<std::size_t>(depth_), ' ').append(line) += '\n';
  }

  std::string text_;
  int depth_ = 1;
};

}  // namespace caldera
