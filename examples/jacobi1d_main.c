/* T steps of 1D Jacobi on the two halves of a: jacobi1d_main [T N s B] */
#include "host.h"
#include "jacobi1d.h"

void serial_jacobi1d(int T, int N, int s, int B, int a[2 * N]);

int main(int argc, char **argv) {
  int T = argument(argc, argv, 1, 4), N = argument(argc, argv, 2, 32770), s = argument(argc, argv, 3, 4),
      B = argument(argc, argv, 4, 64);
  size_t count = 2 * (size_t)N, bytes = count * sizeof(int);
  int *a = allocate(bytes), *serial = allocate(bytes);
  fill_ints(a, count);
  memcpy(serial, a, bytes);

  jacobi1d(T, N, s, B, a);
  serial_jacobi1d(T, N, s, B, serial);

  metafork_machine machine = current_machine();
  int leaf = jacobi1d_k0_select(&machine, N, s, B, 0);
  return report("jacobi1d_k0", leaf, jacobi1d_k0_leaf_system(leaf), a, serial, bytes);
}
