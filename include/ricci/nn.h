// Networks: layers as plain structs of arrays, training mode as a scope, a trainer, data for it,
// and checkpoints it goes on from.
//
//   #include <ricci/nn.h>
//
//   struct Net {                          // fields are params, named "hidden.w", "out.b", …
//     nn::Linear hidden{784, 128}, out{128, 10};
//     nn::Dropout drop{0.1};
//     Array operator()(const Array& x) const { return out(drop(relu(hidden(x)))); }
//   };
//   Trainer train(Net{}, loss, AdamW{.learning_rate = 1e-3});
//   for (auto [i, batch] : enumerate(Loader(data, {.batch = 64, .shuffle = 1}))) train(batch);
//   save("run.safetensors", train);
#pragma once

#if __cplusplus < 202002L
#error "Ricci needs C++20: compile with -std=c++20"
#else

#include "ricci/array.h"
#include "ricci/data.h"
#include "ricci/nn/adapters.h"
#include "ricci/nn/initializers.h"
#include "ricci/nn/layers.h"
#include "ricci/nn/losses.h"
#include "ricci/nn/models.h"
#include "ricci/nn/summary.h"
#include "ricci/nn/trainer.h"
#include "ricci/nn/transformer.h"
#include "ricci/train/checkpoint.h"

#endif
