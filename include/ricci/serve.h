// Generation from language models, token by token.
#pragma once

#include "ricci/nn.h"
#include "ricci/nn/pretrained.h"
#include "ricci/serve/generator.h"
#include "ricci/serve/sampling.h"
