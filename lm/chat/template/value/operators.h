// Implements what Python's operators do with values.
#pragma once

#include <cstdint>

#include "lm/chat/template/value/value.h"

namespace caldera::chat {

enum class Arithmetic : std::uint8_t { add, subtract, multiply, divide, floor_divide, modulo, power };
enum class Ordering : std::uint8_t { less, less_equal, greater, greater_equal };

/// These throw a Fault for operands that Python refuses.
bool ordered(const Value& a, Ordering how, const Value& b);
Value arithmetic(const Value& a, Arithmetic how, const Value& b);
Value negative(const Value& value);
Value positive(const Value& value);
bool contains(const Value& container, const Value& item);
/// len(x).
std::int64_t length_of(const Value& value);

/// x[from:to:stride]; bounds that are none are left open.
Value slice_of(const Value& value, const Value& from, const Value& to, const Value& stride);
/// The place of item `index` in a sequence of `length`, counted from the end where it is negative; false
/// where there is none.
bool place_of(std::int64_t index, std::size_t length, std::size_t& place);

}  // namespace caldera::chat
