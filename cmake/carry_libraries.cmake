# Copies what `libraries` needs and not every system has into `folder` below the prefix. Run when a
# portable build is installed; RicciPackage.cmake sets the names.
cmake_path(GET openblas PARENT_PATH openblas_folder)
file(
  GET_RUNTIME_DEPENDENCIES
  LIBRARIES "${libraries}"
  RESOLVED_DEPENDENCIES_VAR needed
  UNRESOLVED_DEPENDENCIES_VAR missing
  CONFLICTING_DEPENDENCIES_PREFIX twice
  DIRECTORIES "${openblas_folder}"
  PRE_EXCLUDE_REGEXES ${everywhere})
# OpenBLAS may be found both by the system's choice of one and in its own folder, which is meant.
foreach(name IN LISTS twice_FILENAMES)
  list(GET twice_${name} 0 one)
  foreach(file IN LISTS twice_${name})
    if(file MATCHES "^${openblas_folder}/")
      set(one "${file}")
    endif()
  endforeach()
  list(APPEND needed "${one}")
endforeach()
if(missing)
  message(FATAL_ERROR "These libraries are needed and not found: ${missing}")
endif()
foreach(library IN LISTS needed)
  file(INSTALL "${library}" DESTINATION "${CMAKE_INSTALL_PREFIX}/${folder}" TYPE SHARED_LIBRARY
       FOLLOW_SYMLINK_CHAIN)
endforeach()
