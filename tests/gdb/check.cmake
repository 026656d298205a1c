# Looks at the variables of a small program with gdb and the printers that are installed.
#   cmake -DGDB=… -DSUBJECT=… -DPRINTERS=… -P check.cmake
set(prints "")
foreach(name tensor turned halves layer graph x y compiled computed)
  list(APPEND prints -ex "print ${name}")
endforeach()
execute_process(
  COMMAND "${GDB}" -nx -batch -ex "set debuginfod enabled off" -ex "set startup-with-shell off" -ex
          "source ${PRINTERS}" -ex "break stop_here" -ex run -ex up ${prints} "${SUBJECT}"
  OUTPUT_VARIABLE out
  ERROR_VARIABLE err
  RESULT_VARIABLE status)
if(out MATCHES "ptrace|Could not trace" OR err MATCHES "ptrace|Could not trace")
  message("skipped: processes may not be traced here")
  return()
endif()
foreach(
  wanted
  "= f32[2, 3] [[1, 2, 3], [4, 5, 6.5]]"
  "= f32[3, 2] [[1, 4], [2, 5], [3, 6.5]]"
  "= bf16[2] [1.5, 1.5]"
  "w = f32[2, 3] [[1, 2, 3], [4, 5, 6.5]]"
  "b = f32[2, 3] waiting for add"
  "= graph @net of 4 nodes, inputs x: f32[2, 3], params c1.w: f32[3], outputs prediction: f32[2, 3]"
  "= f32[2, 3] [[3, 5, 7], [9, 11, 14]]"
  "= f32[3, 2] [[1.5, 4.5], [2.5, 5.5], [3.5, 7]]"
  "= %x : f32[2, 3] by input in @net"
  "= %y : f32[2, 3] by tanh in @net")
  string(FIND "${out}" "${wanted}" at)
  if(at EQUAL -1)
    message(FATAL_ERROR "gdb does not show: ${wanted}\n${out}\n${err}")
  endif()
endforeach()
