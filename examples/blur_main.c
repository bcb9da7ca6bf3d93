/* A 3x3 mean filter: blur_main [height width B0 B1 s] */
#include "blur.h"
#include "host.h"

void serial_blur(int height, int width, int B0, int B1, int s, const unsigned char image[height][width],
                 unsigned char blurred[height][width]);

int main(int argc, char **argv) {
  int height = argument(argc, argv, 1, 479), width = argument(argc, argv, 2, 641), B0 = argument(argc, argv, 3, 8),
      B1 = argument(argc, argv, 4, 32), s = argument(argc, argv, 5, 4);
  size_t bytes = (size_t)height * width;
  unsigned char *image = allocate(bytes), *blurred = allocate(bytes), *serial = allocate(bytes);
  fill_bytes(image, bytes);
  memset(blurred, 0, bytes);
  memset(serial, 0, bytes);

  blur(height, width, B0, B1, s, (const void *)image, (void *)blurred);
  serial_blur(height, width, B0, B1, s, (const void *)image, (void *)serial);

  metafork_machine machine = current_machine();
  int leaf = blur_k0_select(&machine, height, width, B0, B1, s);
  return report("blur_k0", leaf, blur_k0_leaf_system(leaf), blurred, serial, bytes);
}
