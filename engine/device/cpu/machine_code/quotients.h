// Emits quotients of many numbers by one, such as those of a softmax, without the processor's division, which
// takes several times as long as what it is made of here. AVX-512.
#pragma once

#include "engine/device/cpu/machine_code/lanes.h"

namespace caldera::cpu {

/// Holds a divisor, which is in every lane, and what it is divided with.
struct Divisor {
  Lanes::Vec number;
  Lanes::Vec reciprocal, rest;  // 1 / number, and what that lacks
  Lanes::Vec reach;             // which dividends suit it, see quotients.cpp
};

/// Emits what is computed of a divisor once.
Divisor divisor_of(const Lanes& lanes, const Lanes::Vec& number);

/// Emits a / divisor, rounded as the processor's division rounds it: the same bits.
Lanes::Vec quotient(const Lanes& lanes, const Lanes::Vec& a, const Divisor& divisor);

}  // namespace caldera::cpu
