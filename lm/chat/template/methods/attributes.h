// Finds what x.name and x[key] are: methods, keys and items, with what the sandbox forbids left out.
#pragma once

#include <string>

#include "lm/chat/template/value/value.h"

namespace caldera::chat {

/// x.name: an attribute or method, else the item of that key; undefined where there is neither.
Value get_attribute(const Value& of, const std::string& name);
/// x[key]: an item, else, for a text as key, an attribute.
Value get_item(const Value& of, const Value& key);
/// An attribute or method alone; false where there is none.
bool find_attribute(const Value& of, const std::string& name, Value& out);

}  // namespace caldera::chat
