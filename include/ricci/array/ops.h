// All ops on arrays.
#pragma once

#include "ricci/array/counting.h"
#include "ricci/array/everyday.h"
#include "ricci/array/lift.h"
#include "ricci/array/math.h"
#include "ricci/array/more.h"
#include "ricci/array/nn.h"
#include "ricci/array/op_list.h"
#include "ricci/array/shape.h"
#include "ricci/array/special.h"
#include "ricci/array/spectra.h"
#include "ricci/array/spellings.h"
