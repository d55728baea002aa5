# caldera_compile_shaders(<out-var>): compiles and optimises shaders/*/*.comp and embeds them in one generated source,
# together with the text of shaders/*/*.glsl.
#
# The generated file defines the functions of engine/device/vulkan/pipelines/embedded_shaders.h; a
# shader's name is its stem, so stems are unique.
#
# Shaders name the values of an enumeration of C++ by what this makes of the header that declares it: the file
# <name>.glsl with a constant for each, in capitals (caldera_shader_enum).
function(caldera_shader_enum folder name header type)
  set(path "${PROJECT_SOURCE_DIR}/${header}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  file(READ "${path}" text)
  string(REGEX REPLACE "//[^\n]*" "" text "${text}")
  if(NOT text MATCHES "enum class ${type} : std::uint8_t {([^}=]*)}")
    message(FATAL_ERROR "${header}: no enumeration ${type} of consecutive values")
  endif()
  string(REGEX MATCHALL "[A-Za-z_0-9]+" values "${CMAKE_MATCH_1}")
  set(lines "// Made by CMake from ${type} of ${header}.\n")
  set(number 0)
  foreach(value IN LISTS values)
    string(TOUPPER "${value}" value)
    string(APPEND lines "const int ${value} = ${number};\n")
    math(EXPR number "${number} + 1")
  endforeach()
  file(CONFIGURE OUTPUT "${folder}/${name}.glsl" CONTENT "${lines}" @ONLY)
endfunction()

function(caldera_compile_shaders out_var)
  set(dir "${PROJECT_SOURCE_DIR}/shaders")
  set(work "${PROJECT_BINARY_DIR}/shaders")
  set(source "${work}/embedded_shaders.cpp")
  set(script "${PROJECT_SOURCE_DIR}/cmake/embed_shaders.cmake")
  file(MAKE_DIRECTORY "${work}")
  file(GLOB_RECURSE shaders CONFIGURE_DEPENDS "${dir}/*.comp")
  # Any change to an included file recompiles every shader: they are few, and it is never wrong.
  file(GLOB_RECURSE includes CONFIGURE_DEPENDS "${dir}/*.glsl")

  set(made "${work}/made")
  caldera_shader_enum("${made}" quantized_formats engine/tensor/quantized_format.h QuantizedFormat)
  caldera_shader_enum("${made}" scatter_ways engine/graph/op.h Scatter)
  list(APPEND includes "${made}/quantized_formats.glsl" "${made}/scatter_ways.glsl")

  set(binaries)
  foreach(shader IN LISTS shaders)
    get_filename_component(stem "${shader}" NAME_WE)
    set(raw "${work}/${stem}.raw.spv")
    set(binary "${work}/${stem}.spv")
    set(optimise "${VulkanToolchain_SPIRV_OPT}" --target-env=vulkan1.2 -O "${raw}" -o "${binary}")
    add_custom_command(
      OUTPUT "${binary}" BYPRODUCTS "${raw}"
      COMMAND "${VulkanToolchain_GLSLANG}" --quiet -V --target-env vulkan1.2 "-I${made}" -o "${raw}" "${shader}"
      COMMAND ${optimise}
      DEPENDS "${shader}" ${includes}
      COMMENT "Compiling shader ${stem}"
      VERBATIM)
    list(APPEND binaries "${binary}")
  endforeach()

  # A list in a file, because a removed shader must change a dependency for the source to be made again.
  list(JOIN binaries "\n" text)
  list(JOIN includes "\n" include_text)
  file(CONFIGURE OUTPUT "${work}/shaders.txt" CONTENT "${text}\n${include_text}\n" @ONLY)
  add_custom_command(
    OUTPUT "${source}"
    COMMAND "${CMAKE_COMMAND}" "-DLIST=${work}/shaders.txt" "-DOUTPUT=${source}" -P "${script}"
    DEPENDS "${work}/shaders.txt" "${script}" ${binaries} ${includes}
    COMMENT "Embedding shaders"
    VERBATIM)
  set(${out_var} "${source}" PARENT_SCOPE)
endfunction()
