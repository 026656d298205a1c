// Generation from language models, token by token.
#pragma once

#if __cplusplus < 202002L
#error "Ricci needs C++20: compile with -std=c++20"
#else

#include "ricci/nn.h"
#include "ricci/nn/pretrained.h"
#include "ricci/serve/generator.h"
#include "ricci/serve/sampling.h"

#endif
