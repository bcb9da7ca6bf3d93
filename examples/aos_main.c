/* Squared norms of points, and moments of particles, stored as structures: aos_main [N B] */
#include "host.h"
#include "aos.h"

void serial_norms(int N, int B, const float point[3 * N], float norm[N]);
void serial_moments(int N, int B, const float particle[4 * N], float moment[N]);

int main(int argc, char **argv) {
  int N = argument(argc, argv, 1, 100000), B = argument(argc, argv, 2, 128);
  size_t bytes = (size_t)N * sizeof(float);
  float *structures = allocate(4 * bytes), *ours = allocate(bytes), *serial = allocate(bytes);
  metafork_machine machine = current_machine();
  fill_floats(structures, 4 * (size_t)N);

  memset(ours, 0, bytes);
  memset(serial, 0, bytes);
  norms(N, B, structures, ours);
  serial_norms(N, B, structures, serial);
  int leaf = aos_k0_select(&machine, N, B);
  int status = report("aos_k0", leaf, aos_k0_leaf_system(leaf), ours, serial, bytes);

  memset(ours, 0, bytes);
  memset(serial, 0, bytes);
  moments(N, B, structures, ours);
  serial_moments(N, B, structures, serial);
  leaf = aos_k1_select(&machine, N, B);
  return report("aos_k1", leaf, aos_k1_leaf_system(leaf), ours, serial, bytes) || status;
}
