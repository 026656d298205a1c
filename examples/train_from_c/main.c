/* Trains a network from C. Gradients and the optimiser are compiled ahead of time:
 *
 *   ricci compile net.ric --train adam --learning-rate 0.01 --emit object --name net -o net.o
 *   cc main.c net.o $(pkg-config --libs ricci-runtime) -o train
 */
#include <math.h>
#include <stdio.h>

#include "net.h"

static int failed(void) {
  fprintf(stderr, "%s\n", net_error());
  return 1;
}

int main(void) {
  static float x[net_x_elements], y[net_y_elements];
  net_arrays arrays = {.x = x, .y = y};
  net_program* program;
  if (net_arrays_alloc(&arrays) != net_ok || net_create(&program, 0) != net_ok) return failed();
  for (int i = 0; i < net_x_elements; ++i) {
    x[i] = (float)i / 32 - 1;
    y[i] = sinf(3 * x[i]);
  }
  for (int i = 0; i < net_w1_elements; ++i) {
    arrays.w1[i] = sinf((float)(7 * i));
    arrays.w2[i] = sinf((float)(11 * i)) / 6;
  }
  for (int step = 0; step < 1000; ++step) {
    if (net_run(program, &arrays, 0) != net_ok) return failed();
    if (step % 100 == 0) printf("step %4d  loss %.6f\n", step, *arrays.loss);
  }
  printf("sin(%.3f) = %.3f\n", 3 * x[48], arrays.prediction[48]);
  const int learned = *arrays.loss < 1e-3f;
  net_arrays_free(&arrays);
  net_destroy(program);
  return learned ? 0 : 1;
}
