# caldera_compile_shaders(<out-var>): compiles and optimises shaders/*/*.comp and embeds them in one generated source,
# together with the text of shaders/*/*.glsl.
#
# The generated file defines the functions of engine/device/vulkan/pipelines/embedded_shaders.h; a
# shader's name is its stem, so stems are unique.
function(caldera_compile_shaders out_var)
  set(dir "${PROJECT_SOURCE_DIR}/shaders")
  set(work "${PROJECT_BINARY_DIR}/shaders")
  set(source "${work}/embedded_shaders.cpp")
  set(script "${PROJECT_SOURCE_DIR}/cmake/embed_shaders.cmake")
  file(MAKE_DIRECTORY "${work}")
  file(GLOB_RECURSE shaders CONFIGURE_DEPENDS "${dir}/*.comp")
  # Any change to an included file recompiles every shader: they are few, and it is never wrong.
  file(GLOB_RECURSE includes CONFIGURE_DEPENDS "${dir}/*.glsl")

  set(binaries)
  foreach(shader IN LISTS shaders)
    get_filename_component(stem "${shader}" NAME_WE)
    set(raw "${work}/${stem}.raw.spv")
    set(binary "${work}/${stem}.spv")
    set(optimise "${VulkanToolchain_SPIRV_OPT}" --target-env=vulkan1.2 -O "${raw}" -o "${binary}")
    add_custom_command(
      OUTPUT "${binary}" BYPRODUCTS "${raw}"
      COMMAND "${VulkanToolchain_GLSLANG}" --quiet -V --target-env vulkan1.2 -o "${raw}" "${shader}"
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
