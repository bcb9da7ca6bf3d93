/* NAME_launch on a queue and memory of our own, in a context of our own. */
#include "../interface.h"

/* As CL/cl.h has them. */
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;

int main(int argc, char **argv) {
    metafork_machine machine;
    if (began(argc, argv, &machine)) return 0;
    printf("machine %d %d %d %d %d %d\n", (int)machine.compute_capability, (int)machine.registers_per_thread, (int)machine.registers_per_block,
           (int)machine.shared_words, (int)machine.warp_size, (int)machine.threads_per_block);
    if (argc > 1) return 0;
    printf("refused %d %d\n", matmul_k0_launch(99, NULL, N, B, UB, S, NULL, NULL, NULL), matmul_k0_launch(1, NULL, 1, B, UB, S, NULL, NULL, NULL));
    void *const library = dlopen("libOpenCL.so.1", RTLD_NOW);
    int (*const platforms)(unsigned, void **, unsigned *) = (int (*)(unsigned, void **, unsigned *))found(library, "clGetPlatformIDs");
    int (*const devices)(void *, unsigned long, unsigned, void **, unsigned *) =
        (int (*)(void *, unsigned long, unsigned, void **, unsigned *))found(library, "clGetDeviceIDs");
    void *(*const context_of)(void *, unsigned, void **, void *, void *, int *) =
        (void *(*)(void *, unsigned, void **, void *, void *, int *))found(library, "clCreateContext");
    void *(*const queue_of)(void *, void *, unsigned long, int *) = (void *(*)(void *, void *, unsigned long, int *))found(library, "clCreateCommandQueue");
    void *(*const buffer_of)(void *, unsigned long, size_t, void *, int *) =
        (void *(*)(void *, unsigned long, size_t, void *, int *))found(library, "clCreateBuffer");
    int (*const write)(void *, void *, unsigned, size_t, size_t, const void *, unsigned, void *, void *) =
        (int (*)(void *, void *, unsigned, size_t, size_t, const void *, unsigned, void *, void *))found(library, "clEnqueueWriteBuffer");
    int (*const read)(void *, void *, unsigned, size_t, size_t, void *, unsigned, void *, void *) =
        (int (*)(void *, void *, unsigned, size_t, size_t, void *, unsigned, void *, void *))found(library, "clEnqueueReadBuffer");
    int (*const free_buffer)(void *) = (int (*)(void *))found(library, "clReleaseMemObject");
    int (*const free_queue)(void *) = (int (*)(void *))found(library, "clReleaseCommandQueue");
    int (*const free_context)(void *) = (int (*)(void *))found(library, "clReleaseContext");
    void *platform, *device;
    int error = 0;
    if (platforms(1, &platform, NULL) != 0 || devices(platform, 0xFFFFFFFF, 1, &device, NULL) != 0) return 4;
    void *const context = context_of(NULL, 1, &device, NULL, NULL, &error), *const queue = queue_of(context, device, 0, &error);
    void *const da = buffer_of(context, 1, BYTES, NULL, &error), *const db = buffer_of(context, 1, BYTES, NULL, &error);
    void *const dc = buffer_of(context, 1, BYTES, NULL, &error);
    if (error != 0) return 5;
    write(queue, da, 1, 0, BYTES, a, 0, NULL, NULL);
    write(queue, db, 1, 0, BYTES, b, 0, NULL, NULL);
    for (int leaf = 1; matmul_k0_leaf_system(leaf) != NULL; leaf++) {
        float out[N][N];
        write(queue, dc, 1, 0, BYTES, c, 0, NULL, NULL);
        /* Types of CL/cl.h where the leaf's number is even, pointers where it is odd. */
        if (leaf % 2 == 0)
            error = matmul_k0_launch_cl(leaf, (cl_command_queue)queue, N, B, UB, S, (cl_mem)da, (cl_mem)db, (cl_mem)dc);
        else
            error = matmul_k0_launch(leaf, queue, N, B, UB, S, (const float *)da, (const float *)db, (float *)dc);
        read(queue, dc, 1, 0, BYTES, out, 0, NULL, NULL);
        printf("leaf %d %d %s\n", leaf, error, memcmp(out, serial, sizeof out) == 0 ? "same" : "differs");
    }
    /* Memory of another context than that of the drop-ins, and drop-ins beside it. */
    printf("without a queue %d\n", matmul_k0_launch_cl(1, NULL, N, B, UB, S, (cl_mem)da, (cl_mem)db, (cl_mem)dc));
    matmul(N, B, UB, S, a, b, c);
    printf("drop-in %s\n", memcmp(c, serial, sizeof c) == 0 ? "same" : "differs");
    return free_buffer(da) != 0 || free_buffer(db) != 0 || free_buffer(dc) != 0 || free_queue(queue) != 0 || free_context(context) != 0;
}
