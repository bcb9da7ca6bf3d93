/* Heat in a cube: heat3d_main [n steps B0 B1 B2] */
#include "heat3d.h"
#include "host.h"

void serial_heat3d(int n, int steps, int B0, int B1, int B2, double c, double u[n][n][n], double w[n][n][n]);

int main(int argc, char **argv) {
  int n = argument(argc, argv, 1, 66), steps = argument(argc, argv, 2, 3), B0 = argument(argc, argv, 3, 4),
      B1 = argument(argc, argv, 4, 4), B2 = argument(argc, argv, 5, 16);
  size_t count = (size_t)n * n * n, bytes = count * sizeof(double);
  double *u = allocate(bytes), *w = allocate(bytes), *serial_u = allocate(bytes), *serial_w = allocate(bytes);
  fill_doubles(u, count);
  memcpy(w, u, bytes);
  memcpy(serial_u, u, bytes);
  memcpy(serial_w, u, bytes);

  heat3d(n, steps, B0, B1, B2, 0.1, (void *)u, (void *)w);
  serial_heat3d(n, steps, B0, B1, B2, 0.1, (void *)serial_u, (void *)serial_w);

  metafork_machine machine = current_machine();
  int first = heat3d_k0_select(&machine, n, B0, B1, B2), second = heat3d_k1_select(&machine, n, B0, B1, B2);
  int status = report("heat3d_k0", first, heat3d_k0_leaf_system(first), w, serial_w, bytes);
  return report("heat3d_k1", second, heat3d_k1_leaf_system(second), u, serial_u, bytes) || status;
}
