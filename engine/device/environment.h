// Switches from the environment.
#pragma once

namespace caldera {

/// A small number that an environment variable holds, from `lowest` to `highest`; `fallback` where it is
/// unset or empty. Throws ValueError for anything else: a switch that is silently off, or silently on, is
/// worse than a program that does not start.
int environment_number(const char* name, int fallback, int lowest, int highest);

/// Whether a variable is 1 rather than 0, unset or empty. Throws ValueError for anything else.
bool environment_flag(const char* name, bool fallback = false);

}  // namespace caldera
