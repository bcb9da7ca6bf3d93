/* NAME_launch on device memory of our own, on the device that the driver's calls of this program choose. */
#include "../interface.h"

static void *library, *primary[2];

/* Make the primary context of a device the thread's own, in place of the one that is. */
static int choose(int device) {
    int (*const current)(void **) = (int (*)(void **))found(library, "cuCtxGetCurrent");
    int (*const push)(void *) = (int (*)(void *))found(library, "cuCtxPushCurrent_v2");
    int (*const pop)(void **) = (int (*)(void **))found(library, "cuCtxPopCurrent_v2");
    void *own = NULL;
    if (current(&own) != 0 || (own != NULL && pop(&own) != 0) || push(primary[device]) != 0) exit(7);
    return 0;
}

int main(int argc, char **argv) {
    metafork_machine machine;
    library = dlopen("libcuda.so.1", RTLD_NOW);
    if (argc > 1 && strncmp(argv[1], "captured", 8) == 0) {
        begin_capture = (void *(*)(int))found(library, "standin_begin_capture");
        end_capture = (int (*)(void))found(library, "standin_end_capture");
    }
    if (argc > 1 && strcmp(argv[1], "devices") == 0) {
        ((int (*)(unsigned))found(library, "cuInit"))(0);
        for (int device = 0; device < 2; device++)
            ((int (*)(void **, int))found(library, "cuDevicePrimaryCtxRetain"))(&primary[device], device);
        set_device = choose;
    }
    if (began(argc, argv, &machine)) {
        for (int device = 0; device < 2 && primary[device] != NULL; device++) ((int (*)(int))found(library, "cuDevicePrimaryCtxRelease_v2"))(device);
        return 0;
    }
    printf("machine %d", (int)machine.compute_capability);
    for (const int64_t *field = &machine.registers_per_thread; field <= &machine.shared_words_reserved; field++) printf(" %d", (int)*field);
    puts("");
    if (argc > 1) return 0;
    printf("refused %d %d\n", matmul_k0_launch(99, NULL, N, B, UB, S, NULL, NULL, NULL), matmul_k0_launch(1, NULL, 1, B, UB, S, NULL, NULL, NULL));
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
