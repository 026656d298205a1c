// Spellings of the specification: builders that take by position what an op has as attributes, and
// that give one result of an op that has several.
#pragma once

#if __cplusplus < 202002L
#error "Ricci needs C++20: compile with -std=c++20"
#else

#include "ricci/compat/attention.h"
#include "ricci/compat/conv.h"
#include "ricci/compat/elementwise.h"
#include "ricci/compat/fused.h"
#include "ricci/compat/norm.h"
#include "ricci/compat/quant.h"
#include "ricci/compat/sequence.h"
#include "ricci/compat/spectrum.h"

#endif
