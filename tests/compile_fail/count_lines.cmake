# Runs a compiler (COMMAND, its words separated by |) that is to refuse its source, and fails when it
# says more than MOST_LINES lines about it.
string(REPLACE "|" ";" command "${COMMAND}")
execute_process(COMMAND ${command} RESULT_VARIABLE status OUTPUT_VARIABLE text ERROR_VARIABLE text)
if(status EQUAL 0)
  message(FATAL_ERROR "the source was accepted")
endif()
string(REGEX MATCHALL "\n" lines "${text}")
list(LENGTH lines count)
if(count GREATER MOST_LINES)
  message(FATAL_ERROR "${count} lines, at most ${MOST_LINES} are good:\n${text}")
endif()
