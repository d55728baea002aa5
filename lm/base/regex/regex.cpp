#define PCRE2_CODE_UNIT_WIDTH 8
#include "lm/base/regex/regex.h"

#include <fmt/format.h>
#include <pcre2.h>

#include <algorithm>

#include "engine/base/error.h"
#include "lm/base/json_file.h"
#include "lm/base/regex/new_characters.h"
#include "lm/base/regex/translate_expression.h"
#include "lm/base/unicode/characters.h"

namespace caldera::detail {
namespace {

/// Longest expression that is compiled; the longest of any tokenizer known has some 2,000 bytes.
constexpr std::size_t kMaxExpressionBytes = 64 << 10;
/// Steps that one search may take, and those it may take for each byte of the text besides.
constexpr std::uint64_t kMaxSteps = 10'000'000;
constexpr std::uint64_t kMaxStepsPerByte = 16;
/// Memory that the interpreter of expressions may take, in KiB, where the compiled form's stack is too small.
constexpr std::uint32_t kMaxHeapKiB = 256 << 10;
constexpr std::size_t kFirstStackBytes = 32 << 10;
constexpr std::size_t kMaxStackBytes = 8 << 20;

/// What a search writes to: one for each thread, as making one costs more than a search.
struct Workspace {
  Workspace()
      : match(pcre2_match_data_create(1, nullptr)),
        context(pcre2_match_context_create(nullptr)),
        stack(pcre2_jit_stack_create(kFirstStackBytes, kMaxStackBytes, nullptr)) {
    if (match == nullptr || context == nullptr) throw std::bad_alloc();
    pcre2_set_heap_limit(context, kMaxHeapKiB);
    if (stack != nullptr) pcre2_jit_stack_assign(context, nullptr, stack);
  }
  ~Workspace() {
    pcre2_match_data_free(match);
    pcre2_match_context_free(context);
    if (stack != nullptr) pcre2_jit_stack_free(stack);
  }
  Workspace(const Workspace&) = delete;
  Workspace& operator=(const Workspace&) = delete;

  pcre2_match_data* match;
  pcre2_match_context* context;
  pcre2_jit_stack* stack;
};

Workspace& workspace() {
  thread_local Workspace mine;
  return mine;
}

std::string message_of(int error) {
  PCRE2_UCHAR buffer[256];
  if (pcre2_get_error_message(error, buffer, sizeof(buffer)) < 0) return fmt::format("error {}", error);
  return reinterpret_cast<const char*>(buffer);
}

}  // namespace

struct Regex::Impl {
  ~Impl() { pcre2_code_free(code); }
  std::string expression;
  pcre2_code* code = nullptr;
  bool compiled = false;  ///< to machine code
  bool is_of_oniguruma = false;
};

Regex::Regex(std::string_view expression, Syntax syntax, const std::string& where)
    : impl_(std::make_unique<Impl>()) {
  impl_->expression = std::string(expression);
  const auto fail = [&](const std::string& problem) {
    throw FileError(fmt::format("{}: the regular expression '{}' {}", where, printable(expression), problem));
  };
  if (expression.size() > kMaxExpressionBytes) {
    fail(fmt::format("has {} bytes; the limit is {}", expression.size(), kMaxExpressionBytes));
  }
  std::uint32_t options = PCRE2_UTF | PCRE2_UCP | PCRE2_NEVER_BACKSLASH_C;
  std::string source(expression);
  impl_->is_of_oniguruma = syntax == Syntax::oniguruma;
  if (syntax == Syntax::oniguruma) {
    options |= PCRE2_MULTILINE;  // ^ and $ are those of a line
    auto translated = translate_expression(expression);
    if (!translated.problem.empty()) fail(translated.problem);
    source = std::move(translated.expression);
  }
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  if (context == nullptr) throw std::bad_alloc();
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  int error = 0;
  std::size_t at = 0;
  impl_->code = pcre2_compile(reinterpret_cast<PCRE2_SPTR>(source.data()), source.size(), options, &error,
                              &at, context);
  pcre2_compile_context_free(context);
  if (impl_->code == nullptr) fail(fmt::format("cannot be compiled: {}", message_of(error)));
  impl_->compiled = pcre2_jit_compile(impl_->code, PCRE2_JIT_COMPLETE) == 0;
}

Regex::~Regex() = default;

std::string_view Regex::as_it_is_known(std::string_view text, std::string& changed) const {
  return impl_->is_of_oniguruma ? with_known_characters(text, changed) : text;
}

std::size_t Regex::next_character(std::string_view text, std::size_t at) {
  return at < text.size() ? at + first_character(text.substr(at)).bytes : at + 1;
}

bool Regex::find(std::string_view text, std::size_t from, Match& match) const {
  Workspace& work = workspace();
  const std::uint64_t steps = kMaxSteps + kMaxStepsPerByte * text.size();
  pcre2_set_match_limit(work.context, static_cast<std::uint32_t>(std::min<std::uint64_t>(steps, UINT32_MAX)));
  const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data() == nullptr ? "" : text.data());
  int result = PCRE2_ERROR_JIT_STACKLIMIT;
  if (impl_->compiled && work.stack != nullptr) {
    result = pcre2_jit_match(impl_->code, subject, text.size(), from, 0, work.match, work.context);
  }
  if (result == PCRE2_ERROR_JIT_STACKLIMIT) {
    result = pcre2_match(impl_->code, subject, text.size(), from, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                         work.match, work.context);
  }
  if (result == PCRE2_ERROR_NOMATCH) return false;
  if (result < 0) {
    throw ValueError(fmt::format("the tokenizer's regular expression '{}' failed: {}",
                                 printable(impl_->expression), message_of(result)));
  }
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer(work.match);
  match = {bounds[0], std::max(bounds[0], bounds[1])};
  // A \K within a look-ahead may name a place before the search began.
  if (match.begin < from) match = {from, std::max(from, match.end)};
  return true;
}

}  // namespace caldera::detail
