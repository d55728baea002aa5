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

# For code that runs once a program, behind the options of the build type.
set(CALDERA_OPTIMISED_ONCE $<$<CONFIG:Release>:-O1>)

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
if(CALDERA_UNITY AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # It takes a source that a group includes for a header, whose unnamed namespace would be another in every source.
  target_compile_options(caldera_private INTERFACE -Wno-subobject-linkage)
endif()
if(NOT CALDERA_OPENMP)
  target_compile_options(caldera_private INTERFACE -Wno-unknown-pragmas)
endif()
if(CALDERA_WERROR)
  # What depends on the optimiser's mood stays a warning: a new compiler must not break the build by guessing better.
  target_compile_options(caldera_private INTERFACE -Werror -Wno-error=maybe-uninitialized -Wno-error=array-bounds)
endif()

# caldera_unity_groups(<target> <sources>): compiles the sources (absolute paths) in groups, most of what each costs being
# its headers. A group is a folder's sources, in equal parts where there are more than sixteen, with those of folders
# inside of it or beside it where these are few. Names in unnamed namespaces are then common to a folder.
#
# Alone stays what has compile options of its own, what Highway compiles once for each target by including it again,
# what a library's functions are made in (Volk's), and what has the property SKIP_UNITY_BUILD_INCLUSION.
function(caldera_unity_groups target)
  set(folders "")
  foreach(source IN LISTS ARGN)
    file(STRINGS "${source}" special LIMIT_COUNT 1 REGEX "^#define (HWY_TARGET_INCLUDE|VOLK_IMPLEMENTATION)")
    get_source_file_property(options "${source}" COMPILE_OPTIONS)
    get_source_file_property(alone "${source}" SKIP_UNITY_BUILD_INCLUSION)
    if(NOT special AND NOT options AND NOT alone)
      cmake_path(GET source PARENT_PATH folder)
      list(APPEND folders "${folder}")
      list(APPEND "in_${folder}" "${source}")
    endif()
  endforeach()
  list(REMOVE_DUPLICATES folders)
  list(SORT folders)

  set(most 16)
  set(place "")  # the folder that the last group began with
  set(held 0)    # how many sources it has; none may join a folder that was cut into parts
  foreach(folder IN LISTS folders)
    list(LENGTH "in_${folder}" count)
    cmake_path(GET folder PARENT_PATH parent)
    cmake_path(GET place PARENT_PATH beside)
    math(EXPR together "${held} + ${count}")
    if(NOT (held AND together LESS_EQUAL most AND (parent STREQUAL place OR parent STREQUAL beside)))
      set(place "${folder}")
      set(held 0)
      file(RELATIVE_PATH group "${PROJECT_SOURCE_DIR}" "${folder}")
      string(REPLACE "/" "_" group "${group}")
    endif()
    math(EXPR parts "(${count} + ${most} - 1) / ${most}")
    set(at 0)
    foreach(source IN LISTS "in_${folder}")
      math(EXPR part "${at} * ${parts} / ${count} + 1")
      set(name "${group}")
      if(parts GREATER 1)
        string(APPEND name "_${part}")
      endif()
      set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${name}")
      math(EXPR at "${at} + 1")
    endforeach()
    if(parts GREATER 1)
      set(held 0)
    else()
      math(EXPR held "${held} + ${count}")
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${CALDERA_UNITY} UNITY_BUILD_MODE GROUP)
endfunction()

# caldera_umbrella_header(<name> <path>): makes <caldera/name> forward to "path", in the build tree and when installed.
macro(caldera_umbrella_header name path)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/include/caldera/${name}"
       CONTENT "#pragma once\n#include \"${path}\"\n" @ONLY)
  list(APPEND CALDERA_UMBRELLAS "${path}")
endmacro()
