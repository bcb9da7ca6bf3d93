/* c += a*b for n x n matrices, s0 by s1 results per thread: matmul_tile_main [n B K s0 s1] */
#include "host.h"
#include "matmul_tile.h"

void serial_matmul_tile(int n, int B, int K, int s0, int s1, float a[n][n], float b[n][n], float c[n][n]);

int main(int argc, char **argv) {
  int n = argument(argc, argv, 1, 192), B = argument(argc, argv, 2, 16), K = argument(argc, argv, 3, 16),
      s0 = argument(argc, argv, 4, 4), s1 = argument(argc, argv, 5, 4);
  size_t count = (size_t)n * n, bytes = count * sizeof(float);
  float *a = allocate(bytes), *b = allocate(bytes), *c = allocate(bytes), *serial = allocate(bytes);
  fill_floats(a, count);
  fill_floats(b, count);
  fill_floats(c, count);
  memcpy(serial, c, bytes);

  matmul_tile(n, B, K, s0, s1, (void *)a, (void *)b, (void *)c);
  serial_matmul_tile(n, B, K, s0, s1, (void *)a, (void *)b, (void *)serial);

  metafork_machine machine = current_machine();
  int leaf = matmul_tile_k0_select(&machine, n, B, K, s0, s1);
  return report("matmul_tile_k0", leaf, matmul_tile_k0_leaf_system(leaf), c, serial, bytes);
}
