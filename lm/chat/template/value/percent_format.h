// text % values, Python's printf-style formatting.
#pragma once

#include <string>

#include "lm/chat/template/value/value.h"

namespace caldera::chat {

/// `values` is a tuple of values, a dict for %(name)s, or one value. Throws a Fault as Python does.
Value percent_format(const Value& format, const Value& values);

}  // namespace caldera::chat
