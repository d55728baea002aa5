// Functions of one element in GLSL, accurate to a few units in the last place and alike on every driver.
//
// Vulkan lets the built-in ones err by far more than a training run forgives: sin and cos by 2^-11 and only
// within [-pi, pi], atan by 4096 units, exp by 3 + 2|x|; and drivers differ, so results would differ between
// devices.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace caldera {

/// Adds the text of `function` to `out`, after the functions it calls. `done` holds what is there already.
void append_glsl_function(std::string_view function, std::set<std::string, std::less<>>& done,
                          std::string& out);

}  // namespace caldera
