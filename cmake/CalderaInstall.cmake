# Installs the library, its headers, the program, and the package that find_package(Caldera) reads.

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Caldera")

install(TARGETS caldera EXPORT CalderaTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(TARGET caldera_serve)
  install(TARGETS caldera_serve EXPORT CalderaTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
endif()
if(TARGET caldera_cli)
  install(TARGETS caldera_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

# Headers that a user can reach from <caldera/...>, and no others.
install(CODE "
  set(SOURCE \"${PROJECT_SOURCE_DIR}\")
  set(UMBRELLAS \"${CALDERA_UMBRELLAS}\")
  set(TO \"${CMAKE_INSTALL_INCLUDEDIR}/caldera\")")
install(SCRIPT "${PROJECT_SOURCE_DIR}/cmake/install_headers.cmake")
install(DIRECTORY "${PROJECT_BINARY_DIR}/include/caldera/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/caldera")

install(EXPORT CalderaTargets NAMESPACE Caldera:: DESTINATION "${package_dir}")
set(CALDERA_HAS_SERVE OFF)
set(CALDERA_HTTPLIB_BY_PKG_CONFIG OFF)
if(NOT CALDERA_SERVE_TLS)
  set(CALDERA_SERVE_TLS OFF)
endif()
if(TARGET caldera_serve)
  set(CALDERA_HAS_SERVE ON)
  if(TARGET PkgConfig::CALDERA_HTTPLIB)
    set(CALDERA_HTTPLIB_BY_PKG_CONFIG ON)
  endif()
endif()
configure_package_config_file(cmake/CalderaConfig.cmake.in "${PROJECT_BINARY_DIR}/CalderaConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/CalderaConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/CalderaConfig.cmake" "${PROJECT_BINARY_DIR}/CalderaConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/FindHighway.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindPCRE2.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/FindVulkanToolchain.cmake"
        DESTINATION "${package_dir}")
