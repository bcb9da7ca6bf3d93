/* Moves a matrix row by row, then transposes it: transpose_main [N s B0 B1] */
#include "host.h"
#include "transpose.h"

void serial_transpose(int N, int s, int B0, int B1, int a[N][N], int c[N * N]);
void serial_transpose_true(int N, int s, int B0, int B1, int a[N][N], int c[N][N]);

int main(int argc, char **argv) {
  int N = argument(argc, argv, 1, 1000), s = argument(argc, argv, 2, 2), B0 = argument(argc, argv, 3, 8),
      B1 = argument(argc, argv, 4, 32);
  size_t count = (size_t)N * N, bytes = count * sizeof(int);
  int *a = allocate(bytes), *c = allocate(bytes), *serial = allocate(bytes);
  metafork_machine machine = current_machine();
  fill_ints(a, count);

  memset(c, 0, bytes);
  memset(serial, 0, bytes);
  transpose(N, s, B0, B1, (void *)a, c);
  serial_transpose(N, s, B0, B1, (void *)a, serial);
  int leaf = transpose_k0_select(&machine, N, s, B0, B1);
  int status = report("transpose_k0", leaf, transpose_k0_leaf_system(leaf), c, serial, bytes);

  memset(c, 0, bytes);
  memset(serial, 0, bytes);
  transpose_true(N, s, B0, B1, (void *)a, (void *)c);
  serial_transpose_true(N, s, B0, B1, (void *)a, (void *)serial);
  leaf = transpose_k1_select(&machine, N, s, B0, B1);
  return report("transpose_k1", leaf, transpose_k1_leaf_system(leaf), c, serial, bytes) || status;
}
