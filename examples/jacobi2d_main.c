/* One sweep of 2D Jacobi: jacobi2d_main [rows columns B0 B1] */
#include "host.h"
#include "jacobi2d.h"

void serial_jacobi2d(int rows, int columns, int B0, int B1, float c0, float c1, float c2,
                     const float a[rows][columns], float b[rows][columns]);

int main(int argc, char **argv) {
  int rows = argument(argc, argv, 1, 300), columns = argument(argc, argv, 2, 517), B0 = argument(argc, argv, 3, 8),
      B1 = argument(argc, argv, 4, 32);
  size_t count = (size_t)rows * columns, bytes = count * sizeof(float);
  float *a = allocate(bytes), *b = allocate(bytes), *serial = allocate(bytes);
  fill_floats(a, count);
  memcpy(b, a, bytes);
  memcpy(serial, a, bytes);

  jacobi2d(rows, columns, B0, B1, 0.5f, 0.1f, 0.025f, (const void *)a, (void *)b);
  serial_jacobi2d(rows, columns, B0, B1, 0.5f, 0.1f, 0.025f, (const void *)a, (void *)serial);

  metafork_machine machine = current_machine();
  int leaf = jacobi2d_k0_select(&machine, rows, columns, B0, B1);
  return report("jacobi2d_k0", leaf, jacobi2d_k0_leaf_system(leaf), b, serial, bytes);
}
