/* c += a*b for n x n matrices: matmul_main [n B0 ub1 s] */
#include "host.h"
#include "matmul.h"

void serial_matmul(int n, int B0, int ub1, int s, float a[n][n], float b[n][n], float c[n][n]);

int main(int argc, char **argv) {
  int n = argument(argc, argv, 1, 256), B0 = argument(argc, argv, 2, 16), ub1 = argument(argc, argv, 3, 16),
      s = argument(argc, argv, 4, 2);
  size_t count = (size_t)n * n, bytes = count * sizeof(float);
  float *a = allocate(bytes), *b = allocate(bytes), *c = allocate(bytes), *serial = allocate(bytes);
  fill_floats(a, count);
  fill_floats(b, count);
  fill_floats(c, count);
  memcpy(serial, c, bytes);

  matmul(n, B0, ub1, s, (void *)a, (void *)b, (void *)c);
  serial_matmul(n, B0, ub1, s, (void *)a, (void *)b, (void *)serial);

  metafork_machine machine = current_machine();
  int leaf = matmul_k0_select(&machine, n, B0, ub1, s);
  return report("matmul_k0", leaf, matmul_k0_leaf_system(leaf), c, serial, bytes);
}
