// A program as text, for people who look into the compiler.
#pragma once

#include <string>

#include "engine/compile/program/program.h"

namespace caldera {

/// A line a node: "n4 = divide n2 n3  float32 (256, 1)", then the outputs.
std::string to_string(const Program& program);

}  // namespace caldera
