"""Functions that are called with memory of the device and with managed memory: a program for several back ends."""

TEXT = """
void gather(int n, int B, const int *at, const float *x, float *y) {
  meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) y[i] = x[at[i]] + 1; }
}
void twice(int n, int B, float *y) {
  meta_schedule meta_block(B) { meta_for (int i = 0; i < n; i++) y[i] = y[i] * 2; }
}
"""

MAIN = """
#include "places.h"
#include "metafork/host.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
enum { N = 37 };
void *memory(long bytes, int managed);
void give_back(void *memory);
void move(void *to, const void *from, long bytes, int to_device);
int choose_device(int device);

static int same(const float *y, float factor, int shift) {
  for (int i = 0; i < N; i++)
    if (y[i] != ((float)((i * 7 + 3) % N + shift) + 1) * factor) return 0;
  return 1;
}

int main(int argc, char **argv) {
  int at[N];
  float x[2 * N], y[N] = {0};
  const char *const what = argv[argc - 1];
  const int managed = strcmp(what, "managed") == 0;
  for (int i = 0; i < N; i++) at[i] = (i * 7 + 3) % N;
  for (int i = 0; i < 2 * N; i++) x[i] = (float)i;
  if (strcmp(what, "elsewhere") == 0) choose_device(1);
  float *const there = memory(sizeof x, managed), *const results = memory(sizeof y, managed);
  int *const indices = memory(sizeof at, managed);
  if (managed) {
    memcpy(there, x, sizeof x), memcpy(indices, at, sizeof at);
  } else {
    move(there, x, sizeof x, 1), move(indices, at, sizeof at, 1);
  }
  if (strcmp(what, "elsewhere") == 0) choose_device(0);
  if (strcmp(what, "device") == 0 || strcmp(what, "kept") == 0) {
    if (strcmp(what, "kept") == 0) metafork_keep(results);
    gather(N, 8, indices, there, results);
    twice(N, 8, results);
    twice(N, 8, results);
    if (strcmp(what, "kept") == 0) metafork_drop(results);
    move(y, results, sizeof y, 0);
    if (!same(y, 4, 0)) return 1;
    gather(N, 8, at, there + 5, y); /* some of all */
    if (!same(y, 1, 5)) return 2;
  } else if (managed) {
    gather(N, 8, at, there + 5, y);
    if (!same(y, 1, 5)) return 3;
    gather(N, 8, indices, x, results);
    twice(N, 8, results);
    if (!same(results, 2, 0)) return 4;
  } else {
    gather(N, 8, at, there, there + N); /* both are in one piece of memory */
  }
  give_back(there), give_back(results), give_back(indices);
  puts("same");
  return 0;
}
"""

CASES = {
    # how the program ends, what it says, and how many kernels run
    "device": (0, "", 4),
    "kept": (0, "", 4),
    "managed": (0, "", 3),
    "overlap": (-6, "places_k0: the serial code cannot read x, which is in the memory of the device", 0),
    "elsewhere": (-6, "places_k0: the serial code cannot read x, which is in the memory of the device", 0),
}


def shown(stderr):
    """Return how many kernels ran, what else was said last, and what was moved of `x`."""
    lines = [line.removeprefix("metafork: ") for line in stderr.splitlines()]
    kernels = [line for line in lines if " grid=" in line]
    moved = [line for line in lines if " bytes of " in line]
    said = [line for line in lines if line not in kernels and line not in moved and "is violated" not in line]
    return len(kernels), said[-1:], [line for line in moved if " of x to " in line]


PTX = """
#include <dlfcn.h>
static void *found(const char *name) {
  static void *library;
  if (library == 0) {
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (((int (*)(unsigned))dlsym(library, "cuInit"))(0) != 0) exit(9);
  }
  return dlsym(library, name);
}
typedef unsigned long long address;
static void *contexts[2];
int choose_device(int device) {
  int (*const retain)(void **, int) = found("cuDevicePrimaryCtxRetain");
  int (*const current)(void **) = found("cuCtxGetCurrent"), (*const pop)(void **) = found("cuCtxPopCurrent_v2");
  void *before = 0;
  if (contexts[device] == 0 && retain(&contexts[device], device) != 0) exit(9);
  if (current(&before) == 0 && before != 0) pop(&before);
  return ((int (*)(void *))found("cuCtxPushCurrent_v2"))(contexts[device]);
}
void *memory(long bytes, int managed) {
  int (*const allocate)(address *, size_t) = found("cuMemAlloc_v2");
  int (*const allocate_managed)(address *, size_t, unsigned) = found("cuMemAllocManaged");
  address m = 0;
  if (contexts[0] == 0 && contexts[1] == 0) choose_device(0);
  if (managed ? allocate_managed(&m, bytes, 1) : allocate(&m, bytes)) exit(8);
  return (void *)m;
}
void give_back(void *m) {
  if (((int (*)(address))found("cuMemFree_v2"))((address)m) != 0) exit(8);
}
void move(void *to, const void *from, long bytes, int there) {
  int (*const to_device)(address, const void *, size_t) = found("cuMemcpyHtoD_v2");
  int (*const to_host)(void *, address, size_t) = found("cuMemcpyDtoH_v2");
  if (there ? to_device((address)to, from, bytes) : to_host(to, (address)from, bytes)) exit(8);
}
"""
"""What the main program asks for, by the driver's calls."""
