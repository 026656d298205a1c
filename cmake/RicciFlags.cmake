# ricci_target(<target>) gives one of our own targets its warnings, its language
# level, the protections of compiler and loader and, when this is the top-level
# project, the compiler cache and the fast linker. Everything is private to the
# target: consumers see none of it.

# Programs are position-independent; without shared libraries by an option of their own, see below,
# which -pie would take back.
if(NOT RICCI_STATIC)
  include(CheckPIESupported)
  check_pie_supported()
endif()

set(RICCI_WARNINGS -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror=switch
    -Wno-missing-field-initializers) # designated initialisers leave fields out on purpose
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND RICCI_WARNINGS -Wno-sign-conversion) # GCC's -Wconversion leaves it out too
endif()
if(RICCI_WERROR)
  list(APPEND RICCI_WARNINGS -Werror)
endif()
# GCC 12 follows values through what it has inlined, and at -O3 finds faults in the standard
# library's own code and in borrowed storage that are none. Builds that optimise less show such
# warnings, and go on.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  foreach(kind restrict maybe-uninitialized free-nonheap-object stringop-overflow array-bounds)
    list(APPEND RICCI_WARNINGS "-Wno-$<$<NOT:$<CONFIG:Release>>:error=>${kind}")
  endforeach()
  list(APPEND RICCI_WARNINGS "$<$<CONFIG:Release>:-Wno-stringop-overread>")
endif()

# Symbols are bound at start and what was relocated is read-only afterwards; functions watch their
# stack, and the C library the sizes it can see. A sanitizer does the latter two better, and the
# last needs an optimiser.
set(RICCI_HARDENED_COMPILING "")
set(RICCI_HARDENED_LINKING -Wl,-z,relro,-z,now)
if(NOT CMAKE_CXX_FLAGS MATCHES "-fsanitize")
  set(optimised Release,RelWithDebInfo,MinSizeRel)
  set(fortify_level 2)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 12)
    set(fortify_level 3)
  endif()
  set(RICCI_HARDENED_COMPILING
      -fstack-protector-strong
      "$<$<CONFIG:${optimised}>:-U_FORTIFY_SOURCE;-D_FORTIFY_SOURCE=${fortify_level}>")
endif()

set(RICCI_COMPILER_LAUNCHER "")
set(RICCI_PATH_OPTIONS "")
set(RICCI_LINK_OPTIONS "")

if(PROJECT_IS_TOP_LEVEL)
  # Paths inside objects are relative to the source tree, so that two checkouts
  # share one cache and messages name files the same way on every machine. The
  # compiler runs in the build tree and the cache hands it relative paths, hence
  # the second map.
  cmake_path(RELATIVE_PATH PROJECT_SOURCE_DIR BASE_DIRECTORY "${CMAKE_BINARY_DIR}"
             OUTPUT_VARIABLE ricci_source_from_build)
  set(RICCI_PATH_OPTIONS "-ffile-prefix-map=${PROJECT_SOURCE_DIR}/="
      "-ffile-prefix-map=${ricci_source_from_build}/=")

  find_program(RICCI_CCACHE ccache)
  mark_as_advanced(RICCI_CCACHE)
  if(RICCI_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
    set(RICCI_COMPILER_LAUNCHER
        "${CMAKE_COMMAND}" -E env "CCACHE_BASEDIR=${PROJECT_SOURCE_DIR}" CCACHE_NOHASHDIR=1
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
        "${RICCI_CCACHE}")
  endif()

  # Drivers look for the plain name ld.lld; packages may install only ld.lld-19.
  find_program(RICCI_LLD NAMES ld.lld-19 ld.lld)
  mark_as_advanced(RICCI_LLD)
  if(RICCI_LLD)
    file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/linker")
    file(CREATE_LINK "${RICCI_LLD}" "${PROJECT_BINARY_DIR}/linker/ld.lld" SYMBOLIC)
    set(RICCI_LINK_OPTIONS "-B${PROJECT_BINARY_DIR}/linker" -fuse-ld=lld)
  endif()
endif()

# A program without shared libraries has only the functions it can reach; it is loaded where the
# system likes all the same.
set(RICCI_SECTION_OPTIONS "")
if(RICCI_STATIC)
  set(RICCI_SECTION_OPTIONS -ffunction-sections -fdata-sections)
  list(APPEND RICCI_LINK_OPTIONS -static-pie -Wl,--gc-sections $<$<CONFIG:MinSizeRel>:-s>)
endif()

# What is part of a program that others load keeps its names to itself, and what nothing reaches is
# left out.
if(RICCI_PORTABLE)
  list(APPEND RICCI_LINK_OPTIONS -Wl,--exclude-libs,ALL -Wl,--gc-sections -Wl,--as-needed
       $<$<CONFIG:Release>:-s>)
endif()

function(ricci_target target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_compile_options(${target} PRIVATE ${RICCI_WARNINGS} ${RICCI_PATH_OPTIONS}
                                           ${RICCI_HARDENED_COMPILING} ${RICCI_SECTION_OPTIONS})
  target_link_options(${target} PRIVATE ${RICCI_LINK_OPTIONS} ${RICCI_HARDENED_LINKING})
  # A driver's leaks are not ours.
  get_target_property(kind ${target} TYPE)
  if(kind STREQUAL "EXECUTABLE" AND CMAKE_CXX_FLAGS MATCHES "-fsanitize=[a-z,-]*address")
    target_sources(${target} PRIVATE "${PROJECT_SOURCE_DIR}/cmake/leaks_of_others.cpp")
  endif()
  # Static archives too become part of shared libraries: those of programs compiled ahead of time.
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF POSITION_INDEPENDENT_CODE ON)
  # A static library keeps its symbols out of the host's exports; a shared one exports its API.
  if(NOT BUILD_SHARED_LIBS)
    set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden
                                               VISIBILITY_INLINES_HIDDEN ON)
  endif()
  if(RICCI_COMPILER_LAUNCHER)
    set_target_properties(${target} PROPERTIES CXX_COMPILER_LAUNCHER "${RICCI_COMPILER_LAUNCHER}")
  endif()
endfunction()

# ricci_installed_target(<target> <carried> <libraries>...): a target that is installed. It is linked in
# the build tree as it is installed: CMake would otherwise end its RUNPATH in an empty entry, to be
# found and replaced when installing, and the loader reads that as the current directory. Its
# RUNPATH has the folders of those libraries that lie where the loader does not look. In a portable
# build it is the folder of the libraries that are carried along, from where the target is installed,
# and an RPATH, which the loader follows for what those libraries need in turn.
function(ricci_installed_target target carried)
  set(folders "${CMAKE_INSTALL_RPATH}")
  foreach(library IN LISTS ARGN)
    file(REAL_PATH "${library}" file)
    cmake_path(GET file PARENT_PATH folder)
    if(NOT folder IN_LIST CMAKE_CXX_IMPLICIT_LINK_DIRECTORIES)
      list(APPEND folders "${folder}")
    endif()
  endforeach()
  if(RICCI_PORTABLE)
    list(APPEND folders "\$ORIGIN/${carried}")
    target_link_options(${target} PRIVATE -Wl,--disable-new-dtags)
  endif()
  list(REMOVE_DUPLICATES folders)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON INSTALL_RPATH
                                                                         "${folders}")
endfunction()

# ricci_unity(<target> <name> <sources>...): where RICCI_UNITY asks for it, sources are compiled
# several at a time, which spares most of the time that headers and their templates cost. A group
# is chosen by a file's name alone, so that a new file changes one group and no other; sources with
# options of their own stay alone. Groups hide that a file does not include what it uses: the
# `separate` preset shows it.
function(ricci_unity target folder)
  list(LENGTH ARGN count)
  if(NOT RICCI_UNITY OR count LESS 2)
    return()
  endif()
  set(groups 1)
  while(count GREATER 12)
    math(EXPR groups "2 * ${groups}")
    math(EXPR count "${count} / 2")
  endwhile()
  foreach(source IN LISTS ARGN)
    cmake_path(GET source STEM name)
    string(MD5 digest "${name}")
    string(SUBSTRING "${digest}" 0 6 digits)
    math(EXPR group "0x${digits} % ${groups}")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP
                                                         "${folder}${group}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # GCC takes every source of a group but its own file for a header.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# ricci_precompile(<target> <headers>...) parses headers once for all sources of the target, and
# ricci_precompile(<target> REUSE_FROM <other>) takes those of another. Only where
# RICCI_PRECOMPILE asks for it.
set(RICCI_BASE_HEADERS
    <algorithm> <array> <cmath> <complex> <cstdint> <functional> <limits> <map> <memory>
    <optional> <set> <span> <string> <string_view> <utility> <variant> <vector> <fmt/format.h>)
set(RICCI_GRAPH_HEADERS ${RICCI_BASE_HEADERS} [["ricci/op/ops.h"]] [["ricci/ir/graph.h"]]
                        [["ricci/build/build.h"]])

function(ricci_precompile target)
  if(NOT RICCI_PRECOMPILE)
    return()
  endif()
  set(CMAKE_PCH_PROLOGUE "") # it would silence warnings in our own headers
  if(ARGV1 STREQUAL "REUSE_FROM")
    target_precompile_headers(${target} REUSE_FROM ${ARGV2})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -fpch-preprocess) # lets the cache see through it
  else()
    # Clang keeps no pragmas there, by which libstdc++ says nothing of functions of its own that are
    # deprecated: what std::stable_sort calls is. GCC's builds see whatever else is.
    target_compile_options(${target} PRIVATE -Wno-deprecated-declarations)
  endif()
endfunction()
