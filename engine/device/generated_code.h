// Generated code, for people.
#pragma once

#include <string>
#include <vector>

namespace caldera {

struct Step;

struct GeneratedCode {
  std::string title;
  std::string text;
};

/// Returns what a device generates for a step. Throws DTypeError where it has no code for the step's types.
using CodeWriter = std::vector<GeneratedCode> (*)(const Step& step);

}  // namespace caldera
