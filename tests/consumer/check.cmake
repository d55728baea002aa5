# Installs the build tree into an empty prefix, builds the consumer against that prefix alone, and runs it.

set(prefix "${WORK}/prefix")
file(REMOVE_RECURSE "${WORK}")
file(MAKE_DIRECTORY "${WORK}")

set(flags "")
if(SANITIZE)
  set(flags "-fsanitize=${SANITIZE}")
endif()

function(step)
  execute_process(COMMAND ${ARGV} RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    list(JOIN ARGV " " command)
    message(FATAL_ERROR "failed (${result}): ${command}")
  endif()
endfunction()

step("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${prefix}")
step("${CMAKE_COMMAND}" -S "${CONSUMER}" -B "${WORK}/build" -G "${GENERATOR}"
     "-DCMAKE_CXX_COMPILER=${COMPILER}" "-DCMAKE_CXX_FLAGS=${flags}" "-DCMAKE_PREFIX_PATH=${prefix}"
     "-DCaldera_DIR=${prefix}/${LIBDIR}/cmake/Caldera" "-DEXAMPLES=${CONSUMER}/../../examples")
step("${CMAKE_COMMAND}" --build "${WORK}/build")
step("${WORK}/build/consumer")
