/* What every driver uses: values to fill arrays with, what the reference tells, and the comparison. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* C says of a NaN neither its sign nor its other bits: compilers choose them. */
__attribute__((unused)) static bool driver_same(const char *ours, const char *theirs, size_t size, bool floating, double most) {
  if (!memcmp(ours, theirs, size)) return true;
  if (!floating) return false;
  const double one = driver_value(ours, size), other = driver_value(theirs, size), apart = one - other;
  if (one != one || other != other) return one != one && other != other;
  return (METAFORK_CLOSE) > 0 && (apart < 0 ? -apart : apart) <= (METAFORK_CLOSE)*most;
}

/* Elements of so many bytes, which are the same by driver_same; some of them stand before the one whose number is 0. */
__attribute__((unused)) static int driver_compare(const char *name, const void *ours, const void *theirs, size_t bytes,
                                           size_t size, bool floating, size_t before) {
  size_t first = 0, count = 0;
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
