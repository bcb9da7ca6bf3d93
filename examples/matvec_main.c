/* y += A x: matvec_main [m n B] */
#include "host.h"
#include "matvec.h"

void serial_matvec(int m, int n, int B, const float A[m][n], const float x[n], float y[m]);

int main(int argc, char **argv) {
  int m = argument(argc, argv, 1, 1000), n = argument(argc, argv, 2, 777), B = argument(argc, argv, 3, 32);
  size_t bytes = (size_t)m * sizeof(float);
  float *A = allocate((size_t)m * n * sizeof(float)), *x = allocate((size_t)n * sizeof(float));
  float *y = allocate(bytes), *serial = allocate(bytes);
  fill_floats(A, (size_t)m * n);
  fill_floats(x, n);
  fill_floats(y, m);
  memcpy(serial, y, bytes);

  matvec(m, n, B, (const void *)A, x, y);
  serial_matvec(m, n, B, (const void *)A, x, serial);

  metafork_machine machine = current_machine();
  int leaf = matvec_k0_select(&machine, m, n, B);
  return report("matvec_k0", leaf, matvec_k0_leaf_system(leaf), y, serial, bytes);
}
