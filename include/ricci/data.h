// Data: samples by number, batches in order, texts as tokens, and the files they come from.
//
//   #include <ricci/data.h>
//
//   const Dataset<Batch> data = Batch{map_npy("x.npy"), map_npy("y.npy")};
//   for (auto [i, batch] : enumerate(Loader(data, {.batch = 64, .shuffle = 1, .steps = 600}))) …
#pragma once

#if __cplusplus < 202002L
#error "Ricci needs C++20: compile with -std=c++20"
#else

#include "ricci/array.h"
#include "ricci/data/dataset.h"
#include "ricci/data/files.h"
#include "ricci/data/loader.h"
#include "ricci/data/tokenizer.h"
#include "ricci/data/tokens.h"
#include "ricci/io/csv.h"
#include "ricci/io/image.h"

#endif
