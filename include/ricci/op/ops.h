// Every op struct.
#pragma once

#include "ricci/op/attention.h"
#include "ricci/op/control.h"
#include "ricci/op/custom.h"
#include "ricci/op/elementwise.h"
#include "ricci/op/generator.h"
#include "ricci/op/leaf.h"
#include "ricci/op/linalg.h"
#include "ricci/op/op.h"
#include "ricci/op/reduce.h"
#include "ricci/op/rope.h"
#include "ricci/op/sequence.h"
#include "ricci/op/shape.h"
