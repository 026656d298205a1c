// Models as graphs: modules and blocks, optimisers and training steps, quantisation after training.
// What trains a struct of arrays is in ricci/nn.h.
#pragma once

#if __cplusplus < 202002L
#error "Ricci needs C++20: compile with -std=c++20"
#else

#include "ricci/graph.h"
#include "ricci/model/autodiff.h"
#include "ricci/model/calibration.h"
#include "ricci/model/lbfgs.h"
#include "ricci/model/module.h"
#include "ricci/model/optimizer.h"
#include "ricci/model/optimizers.h"
#include "ricci/model/quantization.h"
#include "ricci/model/schedule.h"
#include "ricci/model/training.h"

#endif
