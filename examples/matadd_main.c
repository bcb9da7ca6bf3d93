/* c = a + b for N x N matrices: matadd_main [N B0 B1] */
#include "host.h"
#include "matadd.h"

void serial_matadd(int N, int B0, int B1, int a[N][N], int b[N][N], int c[N][N]);

int main(int argc, char **argv) {
  int N = argument(argc, argv, 1, 1000), B0 = argument(argc, argv, 2, 8), B1 = argument(argc, argv, 3, 32);
  size_t count = (size_t)N * N, bytes = count * sizeof(int);
  int *a = allocate(bytes), *b = allocate(bytes), *c = allocate(bytes), *serial = allocate(bytes);
  fill_ints(a, count);
  fill_ints(b, count);
  memset(c, 0, bytes);
  memset(serial, 0, bytes);

  matadd(N, B0, B1, (void *)a, (void *)b, (void *)c);
  serial_matadd(N, B0, B1, (void *)a, (void *)b, (void *)serial);

  metafork_machine machine = current_machine();
  int leaf = matadd_k0_select(&machine, N, B0, B1);
  return report("matadd_k0", leaf, matadd_k0_leaf_system(leaf), c, serial, bytes);
}
