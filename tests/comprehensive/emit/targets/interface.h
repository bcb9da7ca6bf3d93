/* The product that both interfaces launch, and what all of them do first. */
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

/* Compute the serial result, run threads where the program has an argument, and query the machine; return whether that is all. */
static int began(int argc, metafork_machine *machine) {
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
        return 1;
    }
    const int queried = metafork_machine_query(0, machine);
    printf("query %d %d\n", queried, metafork_machine_query(9, machine));
    if (queried != METAFORK_OK) {
        printf("launch %d\n", matmul_k0_launch(1, NULL, N, B, UB, S, NULL, NULL, NULL));
        return 1;
    }
    return metafork_machine_query(0, machine) != METAFORK_OK;
}
