/* The driver of a batch of random programs (batch.py): "programs.h", generated, has a function run_SEED for each program and
 * the table of them.  Each runs in a process of its own; argument: seconds after which it is ended.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <sys/time.h>
#include <sys/wait.h>
#include "driver_support.h"

enum { MARGIN = 256 };
typedef struct { const char *name; size_t bytes, size; char *before, *theirs, *ours; } array;
static int wrongs;
static long launches;

/* What accesses say of an extent is negative where there are none. */
static size_t elements(long long count) { return count < 0 ? 0 : (size_t)count; }

static array made(const char *name, size_t bytes, size_t size, void (*fill)(void *, size_t, int)) {
  array a = {name, bytes, size, malloc(bytes + 1), malloc(bytes + 1), malloc(bytes + 2 * MARGIN)};
  if (!a.before || !a.theirs || !a.ours) exit(3);
  fill(a.before, bytes, (int)size);
  memcpy(a.theirs, a.before, bytes);
  return a;
}

static void renew(array *a) {
  memset(a->ours, 0x5a, a->bytes + 2 * MARGIN);
  memcpy(a->ours + MARGIN, a->before, a->bytes);
}

static void wrong(int seed, int leaf, int at, const char *how, const char *what, long place) {
  if (wrongs++ < 5) printf("wrong %d leaf %d, point %d, %s: %s %ld\n", seed, leaf, at, how, what, place);
}

static void compared(int seed, int leaf, int at, const char *how, const array *a) {
  driver_settle(a->ours + MARGIN, a->theirs, a->bytes);
  if (memcmp(a->ours + MARGIN, a->theirs, a->bytes))
    for (size_t i = 0; i < a->bytes / a->size; i++)
      if (memcmp(a->ours + MARGIN + i * a->size, a->theirs + i * a->size, a->size)) {
        wrong(seed, leaf, at, how, a->name, (long)i);
        break;
      }
  for (size_t i = 0; i < MARGIN; i++)
    if (a->ours[i] != 0x5a || a->ours[MARGIN + a->bytes + i] != 0x5a) {
      wrong(seed, leaf, at, how, a->name, a->ours[i] != 0x5a ? -(long)(MARGIN - i) : (long)(a->bytes + i));
      return;
    }
}

static void released(array *a) { free(a->before), free(a->theirs), free(a->ours); }

/* The first pass has the whole grid, the second a small one, backwards. */
static const char *set_up(int pass, int at) {
  static const char *const small[] = {
      "grid_dim_x=1,grid_dim_y=1,grid_dim_z=1",
      "grid_dim_x=2,grid_dim_z=2",
      "grid_dim_x=3,grid_dim_y=2",
  };
  setenv("METAFORK_MACHINE", pass ? small[at % 3] : "", 1);
  setenv("METAFORK_CPU_ORDER", pass ? "reverse" : "forward", 1);
  return pass ? small[at % 3] : "whole grid";
}

#include "programs.h"

int main(int count, char **arguments) {
  static char text[8192];
  for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
    int status, heard[2];
    fflush(stdout);
    if (pipe(heard)) return 3;
    const pid_t child = fork();
    if (child == 0) {
      dup2(heard[1], 2), close(heard[0]), close(heard[1]);
      /* Processor time, so that a busy machine changes nothing; the alarm is for what sleeps for ever. */
      const struct itimerval most = {{0, 0}, {atoi(arguments[1]), 0}};
      setitimer(ITIMER_PROF, &most, NULL);
      alarm(30 * (unsigned)atoi(arguments[1]));
      programs[i].run();
      printf("launches %d %ld\nfinished %d\n", programs[i].seed, launches, programs[i].seed);
      fflush(stdout);
      _exit(0);
    }
    close(heard[1]);
    size_t used = 0;
    for (ssize_t got; (got = read(heard[0], text + used, sizeof text - 1 - used)) > 0;) used += (size_t)got;
    close(heard[0]);
    waitpid(child, &status, 0);
    text[used] = 0;
    text[strcspn(text, "\n")] = 0;
    if (WIFSIGNALED(status))
      printf("wrong %d ended by signal %d (%s): %s\n", programs[i].seed, WTERMSIG(status), strsignal(WTERMSIG(status)), text);
    else if (status != 0)
      printf("wrong %d ended with status %d: %s\n", programs[i].seed, WEXITSTATUS(status), text);
  }
  return 0;
}
