// Graphs as programs for a device: compiling, running, profiling, and objects made ahead of time.
#pragma once

#if __cplusplus < 202002L
#error "Ricci needs C++20: compile with -std=c++20"
#else

#include "ricci/io/object_file.h"
#include "ricci/runtime/ahead_of_time.h"
#include "ricci/runtime/compiled_graph.h"
#include "ricci/runtime/device.h"
#include "ricci/runtime/profile.h"
#include "ricci/runtime/session.h"

#endif
