# What the Vulkan device is built from. Also installed: the static library passes the dependency on.
#
#   VulkanToolchain::vulkan   the headers of Vulkan and volk. The loader is opened at run time and never linked.
#   VulkanToolchain::spirv    glslang and SPIRV-Tools, which turn generated GLSL into optimised SPIR-V at run time
#   VulkanToolchain_GLSLANG, VulkanToolchain_SPIRV_OPT   the programs that do the same to shaders/ at build time
#   VulkanToolchain_MISSING   what was not found, for the message
#
# Libraries are found by name: the package files of glslang differ between releases and some name absent programs.

set(_vulkan_required)
macro(_vulkan_find kind var)
  cmake_language(CALL find_${kind} VulkanToolchain_${var} ${ARGN})
  mark_as_advanced(VulkanToolchain_${var})
  list(APPEND _vulkan_required VulkanToolchain_${var})
endmacro()

_vulkan_find(path VULKAN_INCLUDE NAMES vulkan/vulkan.h)
_vulkan_find(path VOLK_INCLUDE NAMES volk.h PATH_SUFFIXES volk Volk)
_vulkan_find(path GLSLANG_INCLUDE NAMES glslang/Public/ShaderLang.h)
_vulkan_find(path SPIRV_TOOLS_INCLUDE NAMES spirv-tools/optimizer.hpp)
# In link order. From version 14 on, glslang has no OGLCompiler and no HLSL, so these two are optional.
set(_vulkan_libraries)
foreach(_lib IN ITEMS SPIRV glslang-default-resource-limits glslang HLSL MachineIndependent GenericCodeGen OGLCompiler
                      OSDependent SPIRV-Tools-opt SPIRV-Tools)
  string(MAKE_C_IDENTIFIER "LIB_${_lib}" _var)
  if(_lib MATCHES "HLSL|OGLCompiler")
    find_library(VulkanToolchain_${_var} ${_lib})
    mark_as_advanced(VulkanToolchain_${_var})
  else()
    _vulkan_find(library ${_var} NAMES ${_lib})
  endif()
  if(VulkanToolchain_${_var})
    list(APPEND _vulkan_libraries "${VulkanToolchain_${_var}}")
  endif()
endforeach()
# The programs compile shaders/ into the library; whoever uses an installed Caldera has no need of them.
if(NOT VulkanToolchain_FIND_COMPONENTS STREQUAL "Link")
  _vulkan_find(program GLSLANG NAMES glslangValidator)
  _vulkan_find(program SPIRV_OPT NAMES spirv-opt)
endif()

set(VulkanToolchain_MISSING)
foreach(_var IN LISTS _vulkan_required)
  if(NOT ${_var})
    string(REGEX REPLACE "^VulkanToolchain_(LIB_)?" "" _name "${_var}")
    list(APPEND VulkanToolchain_MISSING "${_name}")
  endif()
endforeach()
list(JOIN VulkanToolchain_MISSING ", " VulkanToolchain_MISSING)

set(VulkanToolchain_Link_FOUND TRUE)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(VulkanToolchain REQUIRED_VARS ${_vulkan_required})

if(VulkanToolchain_FOUND AND NOT TARGET VulkanToolchain::spirv)
  add_library(VulkanToolchain::vulkan INTERFACE IMPORTED)
  set_target_properties(VulkanToolchain::vulkan PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${VulkanToolchain_VULKAN_INCLUDE};${VulkanToolchain_VOLK_INCLUDE}")
  find_package(Threads REQUIRED)
  add_library(VulkanToolchain::spirv INTERFACE IMPORTED)
  set_target_properties(VulkanToolchain::spirv PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${VulkanToolchain_GLSLANG_INCLUDE};${VulkanToolchain_SPIRV_TOOLS_INCLUDE}"
    INTERFACE_LINK_LIBRARIES "${_vulkan_libraries};Threads::Threads")
endif()
