# What `make package` makes of a portable build: a tarball that works wherever it is unpacked, and a
# Debian package. Both carry the libraries that not every system has, in a folder of their own.

# Those that every system with the C++ library has stay outside.
set(everywhere "^lib(c|m|dl|rt|pthread|stdc\\+\\+|gcc_s)\\.so" "^ld-linux")
install(
  CODE "set(everywhere [[${everywhere}]])
set(libraries [[$<TARGET_FILE:ricci>]])
set(openblas [[${RICCI_OPENBLAS}]])
set(folder [[${CMAKE_INSTALL_LIBDIR}/ricci]])"
  COMPONENT runtime)
install(SCRIPT "${CMAKE_CURRENT_LIST_DIR}/carry_libraries.cmake" COMPONENT runtime)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/README.md"
              "${PROJECT_SOURCE_DIR}/CHANGELOG.md" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/examples/programs"
        DESTINATION "${CMAKE_INSTALL_DATADIR}/ricci")
if(TARGET ricci_bench_runner)
  install(TARGETS ricci_bench_runner RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}")
endif()

set(CPACK_PACKAGE_NAME "ricci")
set(CPACK_PACKAGE_VENDOR "The Ricci developers")
set(CPACK_PACKAGE_CONTACT "${CPACK_PACKAGE_VENDOR}")
set(CPACK_PACKAGE_FILE_NAME "ricci-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR}")
set(CPACK_PACKAGE_DIRECTORY "${PROJECT_BINARY_DIR}/packages")
set(CPACK_PACKAGE_CHECKSUM SHA256)
set(CPACK_MONOLITHIC_INSTALL ON)
set(CPACK_GENERATOR TGZ DEB)
set(CPACK_RESOURCE_FILE_LICENSE "${PROJECT_SOURCE_DIR}/LICENSE")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION "science")
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.34), libstdc++6 (>= 12), libgcc-s1")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "g++") # links programs that are compiled ahead of time
include(CPack)
