// Values laid out for reading, as Python's pprint does.
#pragma once

#include "lm/chat/template/value/value.h"

namespace caldera::chat {

/// On one line where 80 columns hold it; keys of dicts sorted.
Value pretty(const Value& value);

}  // namespace caldera::chat
