# Installs a build into a scratch prefix, moves that elsewhere, and uses it from there as others
# would: by find_package, by pkg-config, and with the tool. AHEAD_OF_TIME says whether the build has
# programs that are compiled ahead of time.
#   cmake -DBUILD=… -DSOURCES=… -DSCRATCH=… -DCXX=… -DTESTS=… -DAHEAD_OF_TIME=… -P check.cmake

function(run)
  execute_process(COMMAND ${ARGN} RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
  if(NOT status EQUAL 0)
    list(JOIN ARGN " " command)
    message(FATAL_ERROR "${command}\n${out}")
  endif()
endfunction()

file(REMOVE_RECURSE "${SCRATCH}")
run("${CMAKE_COMMAND}" --install "${BUILD}" --prefix "${SCRATCH}/first")
file(RENAME "${SCRATCH}/first" "${SCRATCH}/prefix")
set(prefix "${SCRATCH}/prefix")
file(GLOB_RECURSE pc_files "${prefix}/*.pc")
list(GET pc_files 0 pc_file)
cmake_path(GET pc_file PARENT_PATH pc_folder)
set(ENV{PKG_CONFIG_PATH} "${pc_folder}")

# The tool, as it is installed, runs a program, and writes an object and a shared library.
run("${prefix}/bin/ricci" run "${SOURCES}/double.ric" --random 1)
set(object "")
set(binaries "${prefix}")
if(AHEAD_OF_TIME)
  set(object "${SCRATCH}/twice.o")
  list(APPEND binaries "${SCRATCH}/libtwice.so")
  foreach(output object:twice.o shared:libtwice.so)
    string(REPLACE ":" ";" parts "${output}")
    list(GET parts 0 kind)
    list(GET parts 1 file)
    run("${prefix}/bin/ricci" compile "${SOURCES}/double.ric" --emit ${kind} --name twice -o
        "${SCRATCH}/${file}")
  endforeach()
endif()

# No binary that is installed or linked by the tool loads code from where it is started.
foreach(place IN LISTS binaries)
  run("${CMAKE_COMMAND}" -E env "RICCI_CHECKED_BINARIES=${place}" "${TESTS}"
      --gtest_filter=Binaries.NamedOnesAreHardened)
endforeach()

run("${CMAKE_COMMAND}" -S "${SOURCES}" -B "${SCRATCH}/cmake" "-DCMAKE_PREFIX_PATH=${prefix}"
    "-DCMAKE_CXX_COMPILER=${CXX}")
run("${CMAKE_COMMAND}" --build "${SCRATCH}/cmake")
run("${SCRATCH}/cmake/compiles")
if(AHEAD_OF_TIME)
  run("${CMAKE_COMMAND}" -S "${SOURCES}/runtime" -B "${SCRATCH}/in_c" "-DRICCI_OBJECT=${object}"
      "-DCMAKE_PREFIX_PATH=${prefix}" -DCMAKE_DISABLE_FIND_PACKAGE_LLVM=ON
      -DCMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON)
  run("${CMAKE_COMMAND}" --build "${SCRATCH}/in_c")
  run("${SCRATCH}/in_c/runs")
endif()

find_program(pkg_config NAMES pkg-config pkgconf)
if(NOT pkg_config)
  message(STATUS "pkg-config is not installed: its files are not checked")
  return()
endif()
run(sh -c "'${CXX}' -std=c++20 '${SOURCES}/compiles.cpp' -o '${SCRATCH}/compiles' $('${pkg_config}' --cflags --libs ricci) && '${SCRATCH}/compiles'")
if(AHEAD_OF_TIME)
  run(sh -c "cc -I'${SCRATCH}' '${SOURCES}/runs.c' '${object}' -o '${SCRATCH}/runs' $('${pkg_config}' --libs ricci-runtime) && '${SCRATCH}/runs'")
  # No folder of the compiler's is part of what is installed.
  file(STRINGS "${pc_folder}/ricci-runtime.pc" lines REGEX "/gcc/")
  if(lines)
    message(FATAL_ERROR "ricci-runtime.pc names a folder of the compiler: ${lines}")
  endif()
endif()
file(REMOVE_RECURSE "${SCRATCH}")
