/* What the example hosts share: arguments, numbers to compute with, and the comparison with the serial program. */
#ifndef EXAMPLES_HOST_H
#define EXAMPLES_HOST_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "metafork/machine.h"

/* The n-th argument as a number, or a default. */
static inline int argument(int argc, char **argv, int n, int otherwise) {
  return argc > n ? atoi(argv[n]) : otherwise;
}

static inline void *allocate(size_t bytes) {
  void *memory = malloc(bytes ? bytes : 1);
  if (!memory) {
    fprintf(stderr, "no memory\n");
    exit(2);
  }
  return memory;
}

static inline void fill_floats(float *to, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = (float)((int)(i * 7919 % 2003) - 1001) / 997.0f;
}

static inline void fill_doubles(double *to, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = ((int)(i * 7919 % 200003) - 100001) / 99991.0;
}

static inline void fill_ints(int *to, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = (int)(i * 7919 % 2003) - 1001;
}

static inline void fill_bytes(unsigned char *to, size_t count) {
  for (size_t i = 0; i < count; i++) to[i] = (unsigned char)(i * 7919 % 251);
}

/* Without a device there is no leaf, and the serial program runs. */
static int no_device;

/* Say which leaf the current machine gets, and whether the results agree; returns main's exit status. */
static inline int report(const char *schedule, int leaf, const char *system, const void *ours, const void *serial,
                         size_t bytes) {
  int same = memcmp(ours, serial, bytes) == 0;
  if (leaf && !no_device) printf("%s: leaf %d, chosen because %s\n", schedule, leaf, system);
  else printf("%s: no leaf, the serial program ran\n", schedule);
  printf("%s: %s the serial program, bit for bit\n", schedule, same ? "agrees with" : "DIFFERS from");
  return same ? 0 : 1;
}

/* The machine that leaves are chosen for. */
static inline metafork_machine current_machine(void) {
  metafork_machine machine;
  int error = metafork_machine_query(0, &machine);
  no_device = error == METAFORK_ENODEVICE;
  if (no_device) memset(&machine, 0, sizeof machine);
  else if (error) {
    fprintf(stderr, "cannot query the machine: error %d\n", error);
    exit(2);
  }
  return machine;
}

#endif
