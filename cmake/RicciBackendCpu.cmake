# What the CPU back end stands on and how its sources are compiled; src/CMakeLists.txt includes this
# where RICCI_BACKEND_CPU asks for it, and nothing else in the build names LLVM, oneDNN or OpenBLAS.

find_package(LLVM 19.1 CONFIG)
# oneDNN by its files: the package's own CMake file asks for the development files of OpenCL, which
# nothing here uses.
find_library(RICCI_ONEDNN NAMES dnnl)
find_path(RICCI_ONEDNN_HEADERS NAMES dnnl.hpp)
find_library(RICCI_OPENBLAS NAMES openblas PATH_SUFFIXES openblas-serial)
set(missing "")
foreach(need LLVM_FOUND:LLVM RICCI_ONEDNN:oneDNN RICCI_ONEDNN_HEADERS:oneDNN
             RICCI_OPENBLAS:OpenBLAS)
  string(REPLACE ":" ";" parts "${need}")
  list(GET parts 0 found)
  list(GET parts 1 name)
  if(NOT ${found})
    list(APPEND missing ${name})
  endif()
endforeach()
if(missing)
  list(REMOVE_DUPLICATES missing)
  list(JOIN missing ", " missing)
  message(FATAL_ERROR "The CPU back end needs LLVM 19.1, oneDNN and OpenBLAS, and this is missing: "
                      "${missing}. scripts/setup installs them; -DRICCI_BACKEND_CPU=OFF builds "
                      "without this back end.")
endif()

# Elsewhere than in this build libraries are named, so that what is installed works on machines
# where they lie in other folders. The folder goes along because there can be several OpenBLAS.
if(RICCI_PORTABLE)
  # LLVM becomes part of what is linked; the others are carried along in a folder that is known when
  # all is installed: until then flags call it {libraries}.
  llvm_map_components_to_libnames(llvm OrcJIT Passes X86CodeGen X86AsmParser X86Desc X86Info)
  set(carried "$<INSTALL_PREFIX>/${CMAKE_INSTALL_LIBDIR}/ricci")
  set(run_flags "-l:libdnnl.so.2 -l:libgomp.so.1 -l:libopenblas.so.0")
  string(REPLACE " " ";" installed "${run_flags}")
  list(TRANSFORM installed REPLACE "(.+)" "$<INSTALL_INTERFACE:\\1>")
  foreach(flag -L -Wl,-rpath, -Wl,-rpath-link,)
    string(PREPEND run_flags "${flag}{libraries} ")
    list(PREPEND installed "$<INSTALL_INTERFACE:${flag}${carried}>")
  endforeach()
  set(RICCI_RUN_LIBRARIES
      $<BUILD_INTERFACE:${RICCI_ONEDNN}> $<BUILD_INTERFACE:-l:libgomp.so.1>
      $<BUILD_INTERFACE:${RICCI_OPENBLAS}> ${installed} Threads::Threads)
else()
  set(llvm LLVM)
  cmake_path(GET RICCI_OPENBLAS PARENT_PATH openblas_folder)
  set(run_flags "-ldnnl -l:libgomp.so.1 -L${openblas_folder} -lopenblas")
  set(RICCI_RUN_LIBRARIES
      $<BUILD_INTERFACE:${RICCI_ONEDNN}> $<INSTALL_INTERFACE:-ldnnl> -l:libgomp.so.1
      $<BUILD_INTERFACE:${RICCI_OPENBLAS}> $<INSTALL_INTERFACE:-L${openblas_folder}>
      $<INSTALL_INTERFACE:-lopenblas> Threads::Threads)
  # The same as files, for the RUNPATH of what is installed.
  get_target_property(llvm_file LLVM LOCATION)
  list(APPEND RICCI_LOADED_FILES "${llvm_file}" "${RICCI_ONEDNN}" "${RICCI_OPENBLAS}")
endif()
list(APPEND RICCI_BACKEND_LIBRARIES ${llvm} ${RICCI_RUN_LIBRARIES})
list(APPEND RICCI_BACKEND_HEADERS ${LLVM_INCLUDE_DIRS} ${RICCI_ONEDNN_HEADERS})
# For pkg-config.
set(RICCI_LIBRARY_LINK_FLAGS "-L${LLVM_LIBRARY_DIRS} -lLLVM ${run_flags} -pthread")
# Shared libraries of programs compiled ahead of time are linked with these, beside the runtime.
# Those a program does not use are not loaded with it.
set(RICCI_RUNTIME_LINK_FLAGS "-Wl,--as-needed ${run_flags} -pthread")
if(NOT RICCI_FMT STREQUAL "fmt::fmt-header-only")
  string(APPEND RICCI_RUNTIME_LINK_FLAGS " -lfmt")
endif()

# GCC 12 sees one of the two operators of LLVM's classes that make room for their operands.
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND RICCI_BACKEND_OPTIONS -Wno-mismatched-new-delete)
endif()

# The vector kernels are one source, compiled for each instruction set and chosen at run time.
set(vector_kernels "${CMAKE_CURRENT_SOURCE_DIR}/backend/cpu/kernels/vector_kernels")
set(vector_options -O3 -ffp-contract=fast)
# What fuzz harnesses run lies between guard pages, and none of it is many numbers: sanitizers and an
# optimiser would make these minutes to compile.
if(RICCI_BUILD_FUZZERS)
  set(vector_options -O1 -ffp-contract=fast -fno-sanitize=all)
endif()
set_source_files_properties("${vector_kernels}_base.cpp" PROPERTIES COMPILE_OPTIONS
                                                                   "${vector_options}")
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND vector_options -mavx2 -mfma -mf16c)
  set_source_files_properties("${vector_kernels}_avx2.cpp" PROPERTIES COMPILE_OPTIONS
                                                                     "${vector_options}")
  list(APPEND vector_options -mavx512f -mavx512bw -mavx512dq -mavx512vl)
  set_source_files_properties("${vector_kernels}_avx512.cpp" PROPERTIES COMPILE_OPTIONS
                                                                       "${vector_options}")
endif()

# What stands on a library is linked with a program that is compiled ahead of time only where that
# needs it: each source is a member of the archive.
set(linear_algebra factorization lapack linear_algebra matrix_function solve spectral)
list(TRANSFORM linear_algebra REPLACE "(.+)" "backend/cpu/host/\\1.cpp")
set_source_files_properties(${linear_algebra} backend/cpu/structured/conv_library.cpp
                            PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)

# Headers precompiled for one instruction set are of no use to another.
set_source_files_properties("${vector_kernels}_base.cpp" "${vector_kernels}_avx2.cpp"
                            "${vector_kernels}_avx512.cpp" PROPERTIES SKIP_PRECOMPILE_HEADERS ON)

# Kernels kept on disk are good only for the code generator that made them: its sources are part of
# what they are found by.
file(GLOB_RECURSE code_generator CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/backend/cpu/*.cpp"
     "${CMAKE_CURRENT_SOURCE_DIR}/backend/cpu/*.h")
list(FILTER code_generator INCLUDE REGEX "${compiling_rooms}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${code_generator})
set(code_fingerprint "")
foreach(file IN LISTS code_generator)
  file(SHA256 "${file}" digest)
  string(APPEND code_fingerprint "${digest}")
endforeach()
string(SHA256 code_fingerprint "${LLVM_PACKAGE_VERSION} ${code_fingerprint}")
set_source_files_properties(
  backend/cpu/codegen/object_cache.cpp PROPERTIES COMPILE_DEFINITIONS
                                          RICCI_CODE_FINGERPRINT="${code_fingerprint}")
