// Parses a template.
#pragma once

#include <string_view>

#include "lm/chat/template/base/limits.h"
#include "lm/chat/template/syntax/ast.h"

namespace caldera::chat {

/// Throws a ChatTemplateError for what is no template, what is not supported in one (include, import,
/// extends), and what exceeds the limits.
Program parse_program(std::string_view source, const ChatTemplateLimits& limits);

}  // namespace caldera::chat
