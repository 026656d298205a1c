// Recurrent layers over sequences [T, B, inputs]: scans whose products with the inputs are made for
// all steps at once, before the loop. Gates lie side by side in the weights, in the order named.
#pragma once

#include "ricci/build/build.h"

namespace ricci {

struct RecurrentOptions {
  bool reverse = false;  ///< walk the sequence from its end; outputs keep their places
};
/// Every step's output, and the state after the last one.
struct RecurrentResult {
  Value out;    ///< [T, B, H]
  Value state;  ///< [B, H]
};
/// h ← tanh(x_t·w_x + h·w_h + b);   w_x [I, H], w_h [H, H], b [H], h0 [B, H]
RecurrentResult rnn(Value x, Value h0, Value w_x, Value w_h, Value b, RecurrentOptions options = {},
                    std::source_location loc = std::source_location::current());

/// Gates r, z, n:   r = σ(x_r + h_r), z = σ(x_z + h_z), n = tanh(x_n + r·h_n), with x_· = x_t·w_x +
/// b_x and h_· = h·w_h + b_h;   h ← (1 - z)·n + z·h.   w_x [I, 3H], w_h [H, 3H], b_x and b_h [3H]
RecurrentResult gru(Value x, Value h0, Value w_x, Value w_h, Value b_x, Value b_h,
                    RecurrentOptions options = {},
                    std::source_location loc = std::source_location::current());

struct LstmResult {
  Value out;    ///< [T, B, H]
  Value state;  ///< h after the last step
  Value cell;   ///< c after the last step
};
/// Gates i, f, g, o of x_t·w_x + h·w_h + b:   c ← σ(f)·c + σ(i)·tanh(g);  h ← σ(o)·tanh(c).
/// w_x [I, 4H], w_h [H, 4H], b [4H], h0 and c0 [B, H]
LstmResult lstm(Value x, Value h0, Value c0, Value w_x, Value w_h, Value b,
                RecurrentOptions options = {},
                std::source_location loc = std::source_location::current());

}  // namespace ricci
