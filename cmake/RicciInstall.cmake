# Installs the library, its headers and the tool, with a relocatable CMake
# package (find_package(Ricci)) and pkg-config files: ricci, and ricci-runtime for
# programs compiled ahead of time.

include(CMakePackageConfigHelpers)
include(GNUInstallDirs)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/Ricci")

set(libraries ricci)
if(TARGET ricci_runtime_archive)
  list(APPEND libraries ricci_runtime_archive)
endif()
install(
  TARGETS ${libraries}
  EXPORT RicciTargets
  INCLUDES
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT RicciTargets NAMESPACE Ricci:: DESTINATION "${package_dir}")
install(
  DIRECTORY "${PROJECT_SOURCE_DIR}/include/ricci"
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING
  PATTERN "*.h"
  PATTERN "*.def")
if(TARGET ricci_tool)
  install(TARGETS ricci_tool)
endif()
# How gdb shows tensors, arrays, graphs and values.
install(FILES "${PROJECT_SOURCE_DIR}/share/ricci_gdb.py"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/ricci")

configure_package_config_file(
  "${CMAKE_CURRENT_LIST_DIR}/RicciConfig.cmake.in" "${PROJECT_BINARY_DIR}/package/RicciConfig.cmake"
  INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/RicciConfigVersion.cmake"
                                 COMPATIBILITY SameMajorVersion)
install(FILES "${PROJECT_BINARY_DIR}/package/RicciConfig.cmake"
              "${PROJECT_BINARY_DIR}/package/RicciConfigVersion.cmake" DESTINATION "${package_dir}")

# A static library hands its private dependencies on to whoever links it.
set(RICCI_PC_REQUIRES "fmt zlib")
if(RICCI_FMT STREQUAL "fmt::fmt-header-only")
  set(RICCI_PC_REQUIRES "zlib")
endif()
if(RICCI_IMAGES)
  string(APPEND RICCI_PC_REQUIRES " libpng libjpeg")
endif()
set(RICCI_PC_REQUIRES_PRIVATE "")
if(BUILD_SHARED_LIBS)
  set(RICCI_PC_REQUIRES_PRIVATE "${RICCI_PC_REQUIRES}")
  set(RICCI_PC_REQUIRES "")
endif()
# Libraries without a pkg-config file of their own.
set(RICCI_PC_LIBS "${RICCI_LIBRARY_LINK_FLAGS}")
set(RICCI_PC_LIBS_PRIVATE "")
if(BUILD_SHARED_LIBS)
  set(RICCI_PC_LIBS_PRIVATE "${RICCI_PC_LIBS}")
  set(RICCI_PC_LIBS "")
endif()
file(RELATIVE_PATH RICCI_PC_PREFIX "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
configure_file("${CMAKE_CURRENT_LIST_DIR}/ricci.pc.in" "${PROJECT_BINARY_DIR}/package/ricci.pc"
               @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/package/ricci.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
if(TARGET ricci_runtime_archive)
  string(REPLACE "{libraries}" "\${libdir}/ricci" RICCI_RUNTIME_LINK_FLAGS "${RICCI_RUNTIME_LINK_FLAGS}")
  configure_file("${CMAKE_CURRENT_LIST_DIR}/ricci-runtime.pc.in"
                 "${PROJECT_BINARY_DIR}/package/ricci-runtime.pc" @ONLY)
  install(FILES "${PROJECT_BINARY_DIR}/package/ricci-runtime.pc"
          DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endif()
