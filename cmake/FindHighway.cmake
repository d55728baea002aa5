# Highway (libhwy), as the target Highway::hwy. Also installed: the static library passes the dependency on.
#
# Highway's own package file insists on the contrib and test libraries, which Caldera does not use.

find_path(Highway_INCLUDE_DIR hwy/highway.h)
find_library(Highway_LIBRARY hwy)
mark_as_advanced(Highway_INCLUDE_DIR Highway_LIBRARY)

include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Highway REQUIRED_VARS Highway_LIBRARY Highway_INCLUDE_DIR)

if(Highway_FOUND AND NOT TARGET Highway::hwy)
  add_library(Highway::hwy UNKNOWN IMPORTED)
  set_target_properties(Highway::hwy PROPERTIES
    IMPORTED_LOCATION "${Highway_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${Highway_INCLUDE_DIR}")
  if(Highway_LIBRARY MATCHES "\\.so$")
    set_target_properties(Highway::hwy PROPERTIES INTERFACE_COMPILE_DEFINITIONS HWY_SHARED_DEFINE)
  endif()
endif()
