/* Runs the generated functions of blend.mf and compares with the same loops, written out. */
#include "blend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static float *filled(int count, int salt)
{
  float *data = malloc(sizeof(float) * (size_t)(count > 0 ? count : 1));
  for (int i = 0; i < count; i++) data[i] = (float)((i * 37 + salt) % 101) * 0.37f;
  return data;
}

static int report(const float *left, const float *right, int count)
{
  int same = memcmp(left, right, sizeof(float) * (size_t)count) == 0;
  puts(same ? "same" : "different");
  return same ? 0 : 1;
}

static void serial_relax(int N, int B, int steps, float *a, float *b, float *other)
{
  int dim = (N - 2) / B;
  for (int t = 0; t < steps; t++) {
    other[0] = (float)t;
    for (int i = 0; i < dim * B; i++) b[i + 1] = a[i] + a[i + 2];
    for (int i = 0; i < dim * B; i++) a[i + 1] = 0.5f * b[i + 1];
  }
}

int main(int argc, char **argv)
{
  const char *what = argv[1];
  int host = strcmp(what, "select") != 0 && strcmp(what, "launch") != 0;
  int N = argc > 2 && host ? atoi(argv[2]) : 0, B = argc > 3 ? atoi(argv[3]) : 1, extra = argc > 4 ? atoi(argv[4]) : 0;
  float *a = filled(N, 1), *b = filled(N, 2), *c = filled(N, 3), *d = filled(N, 3), *e = filled(N, 1), *f = filled(N, 2);
  int status = 0;
  if (strcmp(what, "blend") == 0 || strcmp(what, "twice") == 0) {
    for (int times = what[0] == 't' ? 2 : 1; times > 0; times--) {
      blend(N, B, 1.5f, a, c);
      for (int i = 0; i < N / B * B; i++) d[i] = 1.5f * a[i] + d[i];
    }
    status = report(c, d, N);
  } else if (strcmp(what, "overlap") == 0) {
    blend(N - extra, B, 1.5f, c + extra, c);
    for (int i = 0; i < (N - extra) / B * B; i++) d[i] = 1.5f * d[i + extra] + d[i];
    status = report(c, d, N);
  } else if (strcmp(what, "relax") == 0) {
    relax(N, B, extra, a, b, c);
    serial_relax(N, B, extra, e, f, d);
    status = report(a, e, N) + report(b, f, N);
  } else if (strcmp(what, "alias") == 0) { /* the loop's own code writes the array that would stay on the device */
    relax(N, B, extra, a, b, a);
    serial_relax(N, B, extra, e, f, e);
    status = report(a, e, N) + report(b, f, N);
  } else if (strcmp(what, "select") == 0) {
    metafork_machine machine;
    int error = metafork_machine_query(0, &machine);
    int leaf = error == 0 ? blend_k0_select(&machine, strtoll(argv[2], NULL, 10), strtoll(argv[3], NULL, 10)) : error;
    printf("leaf %d %s\n", leaf, leaf > 0 ? blend_k0_leaf_system(leaf) : "-");
  } else if (strcmp(what, "launch") == 0) {
    free(a), free(c);
    a = filled(4096, 1), c = filled(4096, 3);
    int error = blend_k0_launch(extra, NULL, strtoll(argv[2], NULL, 10), strtoll(argv[3], NULL, 10), 1.5f, a, c);
    printf("%d\n", error);
  } else {
    status = 2;
  }
  free(a), free(b), free(c), free(d), free(e), free(f);
  return status;
}
