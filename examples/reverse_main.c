/* c = a reversed, N integers: reverse_main [N s B] */
#include "host.h"
#include "reverse.h"

void serial_reverse(int N, int s, int B, const int a[N], int c[N]);

int main(int argc, char **argv) {
  int N = argument(argc, argv, 1, 1 << 16), s = argument(argc, argv, 2, 4), B = argument(argc, argv, 3, 128);
  size_t count = (size_t)N, bytes = count * sizeof(int);
  int *a = allocate(bytes), *c = allocate(bytes), *serial = allocate(bytes);
  fill_ints(a, count);
  memset(c, 0, bytes);
  memset(serial, 0, bytes);

  reverse(N, s, B, a, c);
  serial_reverse(N, s, B, a, serial);

  metafork_machine machine = current_machine();
  int leaf = reverse_k0_select(&machine, N, s, B);
  return report("reverse_k0", leaf, reverse_k0_leaf_system(leaf), c, serial, bytes);
}
