# Installs the library, its headers, the program, and the package that find_package(Caldera) reads.

include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Caldera")

install(TARGETS caldera EXPORT CalderaTargets ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
if(TARGET caldera_cli)
  install(TARGETS caldera_cli RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

# The Vulkan device's own headers stay behind: they would ask users for Vulkan's.
foreach(folder IN ITEMS engine ops training)
  install(DIRECTORY "${PROJECT_SOURCE_DIR}/${folder}" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/caldera"
          FILES_MATCHING PATTERN "*.h" PATTERN "device/vulkan" EXCLUDE)
endforeach()
install(DIRECTORY "${PROJECT_BINARY_DIR}/include/caldera/" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/caldera")

install(EXPORT CalderaTargets NAMESPACE Caldera:: DESTINATION "${package_dir}")
configure_package_config_file(cmake/CalderaConfig.cmake.in "${PROJECT_BINARY_DIR}/CalderaConfig.cmake"
                              INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/CalderaConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/CalderaConfig.cmake" "${PROJECT_BINARY_DIR}/CalderaConfigVersion.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/FindHighway.cmake" "${PROJECT_SOURCE_DIR}/cmake/FindVulkanToolchain.cmake"
        DESTINATION "${package_dir}")
