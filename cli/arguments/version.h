// The program's version, which CMakeLists.txt states.
#pragma once

namespace caldera::cli {

inline constexpr const char* kVersion = CALDERA_VERSION;

}  // namespace caldera::cli
