// Bounds what a chat template may use up before it is stopped.
#pragma once

#include <cstddef>

namespace caldera {

/// Bounds of one template and of one rendering of it. A template comes from a stranger's file, so each bound
/// holds however the template is written; reaching one is a ChatTemplateError that names it. The defaults
/// leave room for conversations of tens of megabytes.
struct ChatTemplateLimits {
  std::size_t max_source_bytes = std::size_t{1} << 20;
  /// Expressions and statements evaluated, with one more for each item or 64 bytes that an operation handles.
  std::size_t max_steps = 50'000'000;
  /// Values alive at once: texts, lists, dicts, scopes and what is written but not yet output. The variables
  /// given to render() count.
  std::size_t max_memory_bytes = std::size_t{512} << 20;
  std::size_t max_output_bytes = std::size_t{64} << 20;
  /// Nesting of expressions and statements in the source, of lists and dicts in one another, and of macro
  /// calls.
  std::size_t max_depth = 500;
  /// Stack that parsing or rendering may use of the calling thread's.
  std::size_t max_stack_bytes = std::size_t{768} << 10;
};

}  // namespace caldera
