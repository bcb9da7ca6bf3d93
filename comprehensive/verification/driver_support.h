/* What every driver uses: values to fill arrays with, what the reference tells, and the comparison. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "metafork/small_floats.h"

static unsigned long long driver_state = 1;

/* What fills the arrays of a point depends on the point alone, not on what ran before. */
__attribute__((unused)) static void driver_seed(const char *line) {
  driver_state = 14695981039346656037ull;
  for (; *line; line++) driver_state = (driver_state ^ (unsigned char)*line) * 1099511628211ull;
}

/* The driver's own output after driver_begin: the program under test may print what it likes. */
static FILE *driver_report;

static void driver_begin(void) {
  driver_report = fdopen(dup(1), "w");
  if (!driver_report || !freopen("/dev/null", "w", stdout)) exit(4);
}

/* The reference comes to a schedule. */
void driver_reached(const char *form, ...) {
  va_list values;
  va_start(values, form);
  if (driver_report) vfprintf(driver_report, form, values);
  va_end(values);
}

static jmp_buf driver_home;

/* The checked program leaves an array: the point is over. */
__attribute__((noreturn)) void driver_outside(const char *access, const char *hint, long long index, long long extent) {
  if (driver_report) {
    fprintf(driver_report, "outside %s|index %lld, extent %lld|%s\n", access, index, extent, hint);
    fflush(driver_report);
  }
  longjmp(driver_home, 1);
}

static unsigned driver_number(void) {
  driver_state = driver_state * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(driver_state >> 33);
}

__attribute__((unused)) static void driver_fill_float(void *to, size_t bytes, int size) {
  float *element = to;
  for (size_t i = 0; i < bytes / (size_t)size; i++) element[i] = (float)((int)(driver_number() % 2001) - 1000) / 997.0f;
}

__attribute__((unused)) static void driver_fill_double(void *to, size_t bytes, int size) {
  double *element = to;
  for (size_t i = 0; i < bytes / (size_t)size; i++) element[i] = ((int)(driver_number() % 2000001) - 1000000) / 999983.0;
}

/* The bits of multiples of 1/8 between -31 and 31. */
__attribute__((unused)) static void driver_fill_half(void *to, size_t bytes, int size) {
  unsigned short *element = to;
  for (size_t i = 0; i < bytes / (size_t)size; i++) element[i] = metafork_to_half((float)((int)(driver_number() % 497) - 248) / 8);
}

__attribute__((unused)) static void driver_fill_bfloat16(void *to, size_t bytes, int size) {
  unsigned short *element = to;
  for (size_t i = 0; i < bytes / (size_t)size; i++) element[i] = metafork_to_bfloat16((float)((int)(driver_number() % 497) - 248) / 8);
}

/* Small non-negative numbers, whatever the width (little endian). */
__attribute__((unused)) static void driver_fill_integer(void *to, size_t bytes, int size) {
  unsigned char *byte = to;
  for (size_t i = 0; i < bytes; i++) byte[i] = (unsigned char)(i % (size_t)size ? 0 : driver_number() % 120);
}

/* By how much of the largest element results may differ; more than 0 where a device computes functions whose last bits C leaves open. */
#if !defined(METAFORK_CLOSE)
#define METAFORK_CLOSE 0
#endif

__attribute__((unused)) static double driver_value(const char *from, size_t size) {
  float single;
  double wide;
  if (size == sizeof single) return memcpy(&single, from, size), single;
  return memcpy(&wide, from, size), wide;
}

/* The size of the largest finite element. */
__attribute__((unused)) static double driver_largest(const char *from, size_t bytes, size_t size) {
  double most = 0;
  for (size_t at = 0; at < bytes; at += size) {
    double value = driver_value(from + at, size);
    if (value < 0) value = -value;
    if (value > most && value - value == 0) most = value;
  }
  return most;
}

/* Elements to which terms are added in any order: how many terms, the sizes of what was there and of the terms. */
typedef struct {
  const char *place;
  size_t size;
  double next, sizes;
  long long terms;
} driver_sum;
static driver_sum *driver_sums;
static size_t driver_sums_room, driver_sums_used;

__attribute__((unused)) static void driver_forget_terms(void) {
  free(driver_sums);
  driver_sums = NULL;
  driver_sums_room = driver_sums_used = 0;
}

/* Where an element is noted, or would be. */
static driver_sum *driver_sum_at(const char *place) {
  size_t at = (size_t)((uintptr_t)place * 0x9e3779b97f4a7c15ull >> 20) & (driver_sums_room - 1);
  while (driver_sums[at].place && driver_sums[at].place != place) at = (at + 1) & (driver_sums_room - 1);
  return driver_sums + at;
}

static double driver_size(double value) { return value < 0 ? -value : value; }

/* The reference adds a term to an element.  One that holds something else than the last sum begins anew. */
void driver_term(const void *place, double old, double term, int size) {
  if (2 * driver_sums_used >= driver_sums_room) {
    driver_sum *const before = driver_sums;
    const size_t room = driver_sums_room;
    driver_sums_room = room ? 2 * room : 1024;
    driver_sums = calloc(driver_sums_room, sizeof *driver_sums);
    if (!driver_sums) exit(3);
    for (size_t i = 0; i < room; i++)
      if (before[i].place) *driver_sum_at(before[i].place) = before[i];
    free(before);
  }
  driver_sum *const sum = driver_sum_at(place);
  driver_sums_used += !sum->place;
  if (!sum->place || sum->next != old) *sum = (driver_sum){place, (size_t)size, old, driver_size(old), 0};
  sum->next = size == sizeof(float) ? (float)(old + term) : old + term;
  sum->sizes += driver_size(term);
  sum->terms++;
}

/* Sums of ours that differ from theirs by no more than two orders of their terms can, (2 N + 1) u / (1 - N u) times the sizes of
 * the terms, become theirs. */
__attribute__((unused)) static void driver_settle(char *ours, const char *theirs, size_t bytes) {
  for (size_t i = 0; i < driver_sums_room; i++) {
    const driver_sum *const sum = driver_sums + i;
    const size_t at = (size_t)((uintptr_t)sum->place - (uintptr_t)theirs);
    if (!sum->place || at >= bytes) continue;
    const double unit = sum->size == sizeof(float) ? 0x1p-24 : 0x1p-53, terms = (double)sum->terms;
    const double bound = terms * unit < 0.5 ? (2 * terms + 1) * unit / (1 - terms * unit) * sum->sizes : 1e300;
    const double apart = driver_size(driver_value(ours + at, sum->size) - driver_value(sum->place, sum->size));
    if (apart <= bound) memcpy(ours + at, sum->place, sum->size);
  }
}

/* C says of a NaN neither its sign nor its other bits: compilers choose them. */
__attribute__((unused)) static bool driver_same(const char *ours, const char *theirs, size_t size, bool floating, double most) {
  if (!memcmp(ours, theirs, size)) return true;
  if (!floating) return false;
  const double one = driver_value(ours, size), other = driver_value(theirs, size), apart = one - other;
  if (one != one || other != other) return one != one && other != other;
  return (METAFORK_CLOSE) > 0 && driver_size(apart) <= (METAFORK_CLOSE)*most;
}

/* Elements of so many bytes, which are the same by driver_same; some of them stand before the one whose number is 0. */
__attribute__((unused)) static int driver_compare(const char *name, const void *ours, const void *theirs, size_t bytes,
                                           size_t size, bool floating, size_t before) {
  size_t first = 0, count = 0;
  driver_settle((char *)ours, theirs, bytes);
  if (!memcmp(ours, theirs, bytes)) return 0;
  const double most = floating ? driver_largest(theirs, bytes, size) : 0;
  for (size_t i = bytes / size; i-- > 0;)
    if (!driver_same((const char *)ours + i * size, (const char *)theirs + i * size, size, floating, most)) {
      first = i;
      count++;
    }
  if (!count) return 0;
  fprintf(driver_report ? driver_report : stdout, "%s differs at element %lld (%zu of %zu)\n", name,
          (long long)first - (long long)before, count, bytes / size);
  return 1;
}
