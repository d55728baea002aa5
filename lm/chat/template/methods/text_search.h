// Implements the methods of Python's str that look for another text in it.
#pragma once

#include "lm/chat/template/value/function.h"

namespace caldera::chat {

Value split(const Value& self, Arguments& arguments);
Value split_from_right(const Value& self, Arguments& arguments);
Value partition(const Value& self, Arguments& arguments);
Value partition_from_right(const Value& self, Arguments& arguments);
Value find(const Value& self, Arguments& arguments);
Value find_last(const Value& self, Arguments& arguments);
Value index_of(const Value& self, Arguments& arguments);
Value last_index_of(const Value& self, Arguments& arguments);
Value count_of(const Value& self, Arguments& arguments);
Value starts_with(const Value& self, Arguments& arguments);
Value ends_with(const Value& self, Arguments& arguments);

}  // namespace caldera::chat
