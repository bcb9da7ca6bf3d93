/* The product that all interfaces launch: what they do first, threads of the host, and several devices. */
#include "matmul.h"
#include "metafork/host.h"
#include "metafork/machine.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 24, B = 4, UB = 2, S = 3, BYTES = N * N * 4, MOST_THREADS = 20, MOST_ROUNDS = 8 };
static float a[N][N], b[N][N], c[N][N], serial[N][N];

static void *found(void *library, const char *name) {
    void *const symbol = dlsym(library, name);
    if (symbol == NULL) exit(3);
    return symbol;
}

/* ---- threads of the host, each with products of its own: `interface THREADS ROUNDS`, or on some devices in turn: `... DEVICES` ---- */

static int rounds, devices;
static int (*set_device)(int);
static float of_threads[MOST_THREADS][MOST_ROUNDS][N][N];

static void *drop_in(void *of_thread) {
    float(*const out)[N][N] = of_thread;
    if (devices > 0) set_device((int)((out - of_threads[0]) / MOST_ROUNDS) % devices);
    for (int round = 0; round < rounds; round++) matmul(N, B, UB, S, a, b, out[round]);
    return NULL;
}

static void run_threads(int count) {
    pthread_t threads[MOST_THREADS];
    for (int i = 0; i < count; i++)
        for (int round = 0; round < rounds; round++) memcpy(of_threads[i][round], c, sizeof c);
    for (int i = 0; i < count; i++) pthread_create(&threads[i], NULL, drop_in, of_threads[i]);
    for (int i = 0; i < count; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < count; i++) {
        int same = 0;
        for (int round = 0; round < rounds; round++) same += memcmp(of_threads[i][round], serial, sizeof serial) == 0;
        printf("thread %d %s\n", i, same == rounds ? "same" : "differs");
    }
}

/* ---- two devices: `interface devices` ---- */

static int is_serial(float (*out)[N], int times) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) {
            float sum = c[i][j];
            for (int k = 0; k < N * times; k++) sum += a[i][k % N] * b[k % N][j];
            if (sum != out[i][j]) return 0;
        }
    return 1;
}

/* One thread changes the device between calls: arrays that are kept follow it, from the device where they were written. */
static int change_devices(int first) {
    float x[N][N], y[N][N], z[N][N];
    memcpy(x, c, sizeof c), memcpy(y, c, sizeof c), memcpy(z, c, sizeof c);
    set_device(first);
    matmul(N, B, UB, S, a, b, z);
    set_device(1 - first); /* nothing of the first call is there any more, but for its streams */
    matmul(N, B, UB, S, a, b, z);
    metafork_keep(a), metafork_keep(x), metafork_keep(y);
    set_device(first);
    matmul(N, B, UB, S, a, b, x);
    set_device(1 - first); /* a goes along, x stays where it is */
    matmul(N, B, UB, S, a, b, y);
    matmul(N, B, UB, S, a, b, y);
    matmul(N, B, UB, S, a, b, x);
    set_device(first);
    metafork_drop(x), metafork_drop(a), metafork_drop(y);
    return is_serial(x, 2) && is_serial(y, 2) && is_serial(z, 2);
}

static void *on_a_device(void *number) {
    return change_devices(*(int *)number) ? NULL : number;
}

static void run_devices(void) {
    int numbers[] = {0, 1};
    void *wrong[2];
    pthread_t threads[2];
    printf("one thread %s\n", change_devices(0) ? "same" : "differs");
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, on_a_device, &numbers[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], &wrong[i]);
    printf("two threads %s\n", wrong[0] == NULL && wrong[1] == NULL ? "same" : "differ");
}

/* ---- a stream that is being captured: `interface captured-...`, where there are streams ---- */

static void *(*begin_capture)(int blocks);
static int (*end_capture)(void);
__attribute__((weak)) const char *metafork_borrow(int device, void *stream, int count, void *const *memory, const long long *bytes,
                                                  void *const *streams_of, void **hosts);

/* Nothing was launched before, and memory is never looked at. */
static void capture_launches(void) {
    void *const stream = begin_capture(1);
    const float *const memory = (const float *)(uintptr_t)4096;
    int leaves = 0, error = 0;
    for (int leaf = 1; matmul_k0_leaf_system(leaf) != NULL && error == 0; leaf++, leaves++)
        error = matmul_k0_launch(leaf, stream, N, B, UB, S, memory, memory, (float *)(uintptr_t)4096);
    printf("error %d, kernels %d\n", error, end_capture() - leaves);
}

/* Results of a call before are on the device alone. */
static void capture_drop_in(int blocks) {
    float out[N][N];
    memcpy(out, c, sizeof c);
    metafork_keep(out);
    matmul(N, B, UB, S, a, b, out);
    void *const stream = begin_capture(blocks), *memory[] = {(void *)(uintptr_t)4096}, *streams_of[] = {NULL}, *hosts[1];
    const long long bytes[] = {16};
    matmul(N, B, UB, S, a, b, out);
    const char *const refused = metafork_borrow(-1, stream, 1, memory, bytes, streams_of, hosts);
    printf("borrow: %s\n", refused != NULL ? refused : "done");
    printf("kernels %d\n", end_capture());
    matmul(N, B, UB, S, a, b, out);
    metafork_drop(out);
    puts(is_serial(out, 3) ? "same" : "differs");
}

/* ---- what all do first ---- */

/* Compute the serial result, do what arguments say, and query the machine; return whether that is all.  `interface machine` is to
 * print no more than that. */
static int began(int argc, char **argv, metafork_machine *machine) {
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) a[i][j] = (float)(i + j) / 7, b[i][j] = (float)(i - j) / 3, c[i][j] = (float)i;
    memcpy(serial, c, sizeof c);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < N; k++) serial[i][j] += a[i][k] * b[k][j];
    if (begin_capture != NULL) return strcmp(argv[1], "captured-launches") == 0 ? capture_launches() : capture_drop_in(argv[1][9] == 'b'), 1;
    if (argc > 2) {
        rounds = atoi(argv[2]);
        devices = argc > 3 ? atoi(argv[3]) : 0;
        return run_threads(atoi(argv[1])), 1;
    }
    if (argc > 1 && strcmp(argv[1], "devices") == 0) return run_devices(), 1;
    const int queried = metafork_machine_query(0, machine);
    printf("query %d %d\n", queried, metafork_machine_query(9, machine));
    if (queried != METAFORK_OK) {
        printf("launch %d\n", matmul_k0_launch(1, NULL, N, B, UB, S, NULL, NULL, NULL));
        return 1;
    }
    return metafork_machine_query(0, machine) != METAFORK_OK;
}
