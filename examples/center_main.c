/* Subtract from each group of B numbers its mean: center_main [n B] */
#include "center.h"
#include "host.h"

void serial_center(int n, int B, const float x[n], float centered[n]);

int main(int argc, char **argv) {
  int n = argument(argc, argv, 1, 100000), B = argument(argc, argv, 2, 128);
  size_t bytes = (size_t)n * sizeof(float);
  float *x = allocate(bytes), *centered = allocate(bytes), *serial = allocate(bytes);
  fill_floats(x, n);
  memset(centered, 0, bytes);
  memset(serial, 0, bytes);

  center(n, B, x, centered);
  serial_center(n, B, x, serial);

  metafork_machine machine = current_machine();
  int leaf = center_k0_select(&machine, n, B);
  return report("center_k0", leaf, center_k0_leaf_system(leaf), centered, serial, bytes);
}
