/* NAME_launch on device memory of our own, on the device that the driver's calls of this program choose. */
#include "matmul.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { N = 24, B = 4, UB = 2, S = 3, BYTES = N * N * 4 };
static float a[N][N], b[N][N], c[N][N], serial[N][N];

static void *found(void *library, const char *name) {
    void *const symbol = dlsym(library, name);
    if (symbol == NULL) exit(3);
    return symbol;
}

static void *drop_in(void *out) {
    matmul(N, B, UB, S, a, b, out);
    return NULL;
}

int main(int argc, char **argv) {
    (void)argv;
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++) a[i][j] = (float)(i + j) / 7, b[i][j] = (float)(i - j) / 3, c[i][j] = (float)i;
    memcpy(serial, c, sizeof c);
    for (int i = 0; i < N; i++)
        for (int j = 0; j < N; j++)
            for (int k = 0; k < N; k++) serial[i][j] += a[i][k] * b[k][j];
    if (argc > 1) {
        static float of[8][N][N];
        pthread_t threads[8];
        for (int i = 0; i < 8; i++) memcpy(of[i], c, sizeof c);
        for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, drop_in, of[i]);
        for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
        for (int i = 0; i < 8; i++) printf("thread %d %s\n", i, memcmp(of[i], serial, sizeof serial) == 0 ? "same" : "differs");
        return 0;
    }
    metafork_machine machine;
    const int queried = metafork_machine_query(0, &machine);
    printf("query %d %d\n", queried, metafork_machine_query(9, &machine));
    if (queried != METAFORK_OK) {
        printf("launch %d\n", matmul_k0_launch(1, NULL, N, B, UB, S, NULL, NULL, NULL));
        return 0;
    }
    metafork_machine_query(0, &machine);
    printf("machine %d %d %d %d %d\n", (int)machine.compute_capability, (int)machine.registers_per_thread, (int)machine.shared_words,
           (int)machine.warps_per_sm, (int)machine.grid_dim_y);
    printf("refused %d %d\n", matmul_k0_launch(99, NULL, N, B, UB, S, NULL, NULL, NULL), matmul_k0_launch(1, NULL, 1, B, UB, S, NULL, NULL, NULL));
    void *const library = dlopen("libcuda.so.1", RTLD_NOW);
    int (*const current)(void **) = (int (*)(void **))found(library, "cuCtxGetCurrent");
    int (*const retain)(void **, int) = (int (*)(void **, int))found(library, "cuDevicePrimaryCtxRetain");
    int (*const push)(void *) = (int (*)(void *))found(library, "cuCtxPushCurrent_v2");
    int (*const pop)(void **) = (int (*)(void **))found(library, "cuCtxPopCurrent_v2");
    int (*const release)(int) = (int (*)(int))found(library, "cuDevicePrimaryCtxRelease_v2");
    int (*const allocate)(unsigned long long *, size_t) = (int (*)(unsigned long long *, size_t))found(library, "cuMemAlloc_v2");
    int (*const give_back)(unsigned long long) = (int (*)(unsigned long long))found(library, "cuMemFree_v2");
    int (*const to_device)(unsigned long long, const void *, size_t) =
        (int (*)(unsigned long long, const void *, size_t))found(library, "cuMemcpyHtoD_v2");
    int (*const to_host)(void *, unsigned long long, size_t) = (int (*)(void *, unsigned long long, size_t))found(library, "cuMemcpyDtoH_v2");
    void *context = NULL, *own = NULL;
    if (current(&own) != 0) return 4;
    if (own == NULL && (retain(&context, 0) != 0 || push(context) != 0)) return 4;
    unsigned long long da, db, dc;
    if (allocate(&da, BYTES) != 0 || allocate(&db, BYTES) != 0 || allocate(&dc, BYTES) != 0) return 5;
    to_device(da, a, BYTES);
    to_device(db, b, BYTES);
    for (int leaf = 1; matmul_k0_leaf_system(leaf) != NULL; leaf++) {
        float out[N][N];
        to_device(dc, c, BYTES);
        const int error = matmul_k0_launch(leaf, NULL, N, B, UB, S, (const float *)da, (const float *)db, (float *)dc);
        to_host(out, dc, BYTES);
        printf("leaf %d %d %s\n", leaf, error, memcmp(out, serial, sizeof out) == 0 ? "same" : "differs");
    }
    give_back(da), give_back(db), give_back(dc);
    void *now = NULL;
    if (own == NULL && (pop(&now) != 0 || now != context || release(0) != 0)) return 6;
    return current(&now) != 0 || now != own;
}
