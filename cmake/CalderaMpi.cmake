# The libraries that speak MPI, libcaldera_mpi_<implementation>.so: one for each implementation whose mpi.h is here.
# Nothing links them: the program opens the one that launched it (engine/distributed/mpi_library.cpp), and starts without.
#
# CALDERA_MPIS lists those that are built.

option(CALDERA_MPI "Build the libraries for MPI, for those implementations that are found" ON)
set(CALDERA_MPIS "")

# caldera_mpi_library(<implementation> <folder of Debian's> <libraries>...)
function(caldera_mpi_library implementation folder)
  find_path(CALDERA_MPI_INCLUDE_${implementation} mpi.h NO_DEFAULT_PATH
            PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/${folder}/include /usr/include/${folder}-${CMAKE_SYSTEM_PROCESSOR}
                  /usr/lib64/${folder}/include)
  find_library(CALDERA_MPI_LIBRARY_${implementation} NAMES ${ARGN} NO_DEFAULT_PATH
               PATHS /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}/${folder}/lib /usr/lib/${CMAKE_LIBRARY_ARCHITECTURE}
                     /usr/lib64/${folder}/lib)
  mark_as_advanced(CALDERA_MPI_INCLUDE_${implementation} CALDERA_MPI_LIBRARY_${implementation})
  if(NOT CALDERA_MPI_INCLUDE_${implementation} OR NOT CALDERA_MPI_LIBRARY_${implementation})
    message(STATUS "Caldera: no development files of ${implementation} here; building without it")
    return()
  endif()
  add_library(caldera_mpi_${implementation} MODULE engine/distributed/mpi/mpi_library.cpp)
  target_compile_features(caldera_mpi_${implementation} PRIVATE cxx_std_20)
  target_include_directories(caldera_mpi_${implementation} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_include_directories(caldera_mpi_${implementation} SYSTEM PRIVATE "${CALDERA_MPI_INCLUDE_${implementation}}")
  target_link_libraries(caldera_mpi_${implementation} PRIVATE caldera_private "${CALDERA_MPI_LIBRARY_${implementation}}")
  set_target_properties(caldera_mpi_${implementation} PROPERTIES LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib"
                        CXX_VISIBILITY_PRESET hidden)
  install(TARGETS caldera_mpi_${implementation} LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  list(APPEND CALDERA_MPIS ${implementation})
  set(CALDERA_MPIS ${CALDERA_MPIS} PARENT_SCOPE)
endfunction()

if(CALDERA_MPI)
  caldera_mpi_library(openmpi openmpi mpi)
  caldera_mpi_library(mpich mpich mpich)
endif()
foreach(implementation IN LISTS CALDERA_MPIS)
  add_dependencies(caldera caldera_mpi_${implementation})  # who builds a program has them beside it
endforeach()
