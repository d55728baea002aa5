# What every target of this repository is built with, and nothing of what an installed Caldera asks of its users.

set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# Every folder in a fixed place of the build tree, so that scripts and tests know where programs are.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
# benches/gpu.sh packs the programs with the libraries they need in a folder beside theirs.
list(APPEND CMAKE_BUILD_RPATH "$ORIGIN/../lib")
list(APPEND CMAKE_INSTALL_RPATH "$ORIGIN/../lib")
# As DT_RPATH, not DT_RUNPATH: that a library of theirs needs (ICU's data) is found there too.
add_link_options(LINKER:--disable-new-dtags)

if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()

find_program(CALDERA_CCACHE ccache)
mark_as_advanced(CALDERA_CCACHE)
if(CALDERA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # What ccache asks for where headers are precompiled; without it it would only pass the compiler's work on.
  set(CMAKE_CXX_COMPILER_LAUNCHER
      "${CMAKE_COMMAND};-E;env;CCACHE_SLOPPINESS=pch_defines,time_macros;${CALDERA_CCACHE}")
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()

if(CALDERA_SANITIZE)
  # Not on a target: every object, the tests' included, must be instrumented alike. The check of virtual tables needs
  # type information that Debian's SPIRV-Tools and glslang are built without.
  add_compile_options(-fsanitize=${CALDERA_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all
                      -fno-sanitize=vptr)
  add_link_options(-fsanitize=${CALDERA_SANITIZE})
endif()

# Linked by every target of this repository, never exported.
add_library(caldera_private INTERFACE)
target_compile_options(caldera_private INTERFACE
  -Wall -Wextra -Wpedantic -Wnon-virtual-dtor -Wcast-align -Wvla
  # Vulkan's structures are filled with designated initializers; the members left out are meant to be zero.
  -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(caldera_private INTERFACE
    -Wshadow=local -Wduplicated-cond -Wlogical-op
    # False alarms of the optimiser in libstdc++ itself (GCC bugs 105651, 105329 and their kin).
    -Wno-restrict -Wno-stringop-overflow -Wno-stringop-overread)
endif()
if(NOT CALDERA_OPENMP)
  target_compile_options(caldera_private INTERFACE -Wno-unknown-pragmas)
endif()
if(CALDERA_WERROR)
  # What depends on the optimiser's mood stays a warning: a new compiler must not break the build by guessing better.
  target_compile_options(caldera_private INTERFACE -Werror -Wno-error=maybe-uninitialized -Wno-error=array-bounds)
endif()

# caldera_umbrella_header(<name> <path>): makes <caldera/name> forward to "path", in the build tree and when installed.
macro(caldera_umbrella_header name path)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/include/caldera/${name}"
       CONTENT "#pragma once\n#include \"${path}\"\n" @ONLY)
  list(APPEND CALDERA_UMBRELLAS "${path}")
endmacro()
