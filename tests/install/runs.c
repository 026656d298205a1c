/* Runs a program compiled ahead of time with an installed runtime. */
#include <stdio.h>

#include "twice.h"

int main(void) {
  const float x[twice_x_elements] = {1, 2, 3};
  float y[twice_y_elements] = {0, 0, 0};
  const twice_arrays arrays = {x, y};
  twice_program* program = NULL;
  if (twice_create(&program, 1) != twice_ok || twice_run(program, &arrays, 0) != twice_ok) {
    fprintf(stderr, "%s\n", twice_error());
    return 1;
  }
  twice_destroy(program);
  return y[0] == 2 && y[1] == 4 && y[2] == 6 ? 0 : 1;
}
