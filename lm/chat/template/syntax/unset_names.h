// Finds the variables that hide those of the same name outside before they have been set.
//
// A name that a scope sets belongs to the scope from its beginning on, unless the scope itself reads the name
// first or sets it only in a branch. So in
//
//   {% for m in messages %}{{ tools }}{% endfor %}{% set tools = none %}
//
// the loop sees no tools, whatever was given. This is how the original compiles templates.
#pragma once

#include "lm/chat/template/syntax/ast.h"

namespace caldera::chat {

/// Fills the fields `unset` of the program and its statements.
void find_unset_names(Program& program);

}  // namespace caldera::chat
