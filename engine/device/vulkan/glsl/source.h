// The text of a shader while it is written: lines of code, and what has to stand ahead of them.
#pragma once

#include <fmt/core.h>

#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "engine/device/vulkan/glsl/expression.h"
#include "engine/device/vulkan/glsl/variant.h"

namespace caldera {

/// What code needs ahead of it: library functions, extensions, blocks of memory.
struct GlslNeeds {
  GlslCalls calls;
  bool int64 = false, bytes = false, halves = false, doubles = false;
  bool subgroups = false, broadcasts = false;  // arithmetic and passing values around in subgroups

  /// Registers of the type.
  void value(DType type) {
    int64 |= type == DType::i64;
    doubles |= type == DType::f64;
  }
  /// Elements of the type in memory. Throws DTypeError for types without a kernel.
  void memory(DType type) {
    glsl_type(compute_type(type));
    value(compute_type(type));
    bytes |= size_of(type) == 1;
    halves |= size_of(type) == 2;
  }
  void add(const GlslNeeds& more) {
    calls.insert(more.calls.begin(), more.calls.end());
    int64 |= more.int64;
    bytes |= more.bytes;
    halves |= more.halves;
    doubles |= more.doubles;
    subgroups |= more.subgroups;
    broadcasts |= more.broadcasts;
  }
};

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
