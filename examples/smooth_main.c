/* Three-point means of n numbers: smooth_main [n s B] */
#include "host.h"
#include "smooth.h"

void serial_smooth(int n, int s, int B, const float x[n], float y[n]);

int main(int argc, char **argv) {
  int n = argument(argc, argv, 1, 100002), s = argument(argc, argv, 2, 4), B = argument(argc, argv, 3, 128);
  size_t bytes = (size_t)n * sizeof(float);
  float *x = allocate(bytes), *y = allocate(bytes), *serial = allocate(bytes);
  fill_floats(x, n);
  memset(y, 0, bytes);
  memset(serial, 0, bytes);

  smooth(n, s, B, x, y);
  serial_smooth(n, s, B, x, serial);

  metafork_machine machine = current_machine();
  int leaf = smooth_k0_select(&machine, n, s, B);
  return report("smooth_k0", leaf, smooth_k0_leaf_system(leaf), y, serial, bytes);
}
