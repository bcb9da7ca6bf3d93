/* Thread blocks on the host: every thread of a block is a fiber, and a barrier really separates.
 *
 * Blocks run one after the other on the calling thread.  A fiber runs threads in turn until one of them reaches a
 * barrier; that thread keeps the fiber, and the next fiber goes on with the next thread.  So a kernel that reaches no
 * barrier is a plain loop over its threads, and one that does needs one switch a thread and barrier; nothing has to be
 * known about the kernel beforehand.  A barrier that only some threads of a block reach, or that they reach at
 * different lines, ends the program with a message.  A shuffle is a barrier of the 32 threads of one warp, which take
 * their turns among themselves until the last shuffle of a row is done; all 32 must reach it, at one line.
 *
 * Dynamic shared memory is a heap block of exactly the launched size, so that AddressSanitizer sees an overrun; it holds
 * bytes 0xff at the start of every block (a NaN in floating arrays) under METAFORK_CHECK, and is undefined otherwise.
 *
 * An asynchronous copy takes effect when its thread waits for it, as late as it may; METAFORK_CPU_COPIES=early in the
 * environment has it take effect at once, as early as it may.
 *
 * METAFORK_CPU_ORDER=reverse in the environment runs blocks, and the threads of a block, from last to first.
 * METAFORK_CPU_STACK_BYTES sets the stack of a thread; METAFORK_CPU_UCONTEXT asks for the portable context switch.
 *
 * Only C library symbols are used, so that a C compiler can link the result.
 */
#ifndef METAFORK_CPU_BLOCKS_H
#define METAFORK_CPU_BLOCKS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define METAFORK_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) && !defined(METAFORK_ASAN)
#define METAFORK_ASAN 1
#endif
#if defined(METAFORK_ASAN)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define METAFORK_NO_ASAN __attribute__((no_sanitize_address))
#else
#define METAFORK_NO_ASAN
#endif

#if !defined(METAFORK_CPU_STACK_BYTES)
#define METAFORK_CPU_STACK_BYTES (256 * 1024)
#endif

#if !defined(METAFORK_CPU_UCONTEXT) && !(defined(__ELF__) && (defined(__x86_64__) || defined(__aarch64__)))
#define METAFORK_CPU_UCONTEXT 1
#endif

#if defined(METAFORK_CPU_UCONTEXT)
#include <ucontext.h>
#else
/* Saves the callee-saved registers on the stack, leaves the stack pointer in *from, goes on at `to`. */
extern "C" void metafork_cpu_switch(void **from, void *to);
#if defined(__x86_64__)
__asm__(".pushsection .text.metafork_cpu_switch,\"ax\",@progbits\n"
        ".weak metafork_cpu_switch\n"
        ".hidden metafork_cpu_switch\n"
        ".type metafork_cpu_switch,@function\n"
        "metafork_cpu_switch:\n"
        "\tpushq %rbp\n"
        "\tpushq %rbx\n"
        "\tpushq %r12\n"
        "\tpushq %r13\n"
        "\tpushq %r14\n"
        "\tpushq %r15\n"
        "\tmovq %rsp, (%rdi)\n"
        "\tmovq %rsi, %rsp\n"
        "\tpopq %r15\n"
        "\tpopq %r14\n"
        "\tpopq %r13\n"
        "\tpopq %r12\n"
        "\tpopq %rbx\n"
        "\tpopq %rbp\n"
        "\tret\n"
        ".size metafork_cpu_switch,.-metafork_cpu_switch\n"
        ".popsection\n");
#else
__asm__(".pushsection .text.metafork_cpu_switch,\"ax\",%progbits\n"
        ".weak metafork_cpu_switch\n"
        ".hidden metafork_cpu_switch\n"
        ".type metafork_cpu_switch,%function\n"
        "metafork_cpu_switch:\n"
        "\tsub sp, sp, #160\n"
        "\tstp x19, x20, [sp, #0]\n"
        "\tstp x21, x22, [sp, #16]\n"
        "\tstp x23, x24, [sp, #32]\n"
        "\tstp x25, x26, [sp, #48]\n"
        "\tstp x27, x28, [sp, #64]\n"
        "\tstp x29, x30, [sp, #80]\n"
        "\tstp d8, d9, [sp, #96]\n"
        "\tstp d10, d11, [sp, #112]\n"
        "\tstp d12, d13, [sp, #128]\n"
        "\tstp d14, d15, [sp, #144]\n"
        "\tmov x9, sp\n"
        "\tstr x9, [x0]\n"
        "\tmov sp, x1\n"
        "\tldp x19, x20, [sp, #0]\n"
        "\tldp x21, x22, [sp, #16]\n"
        "\tldp x23, x24, [sp, #32]\n"
        "\tldp x25, x26, [sp, #48]\n"
        "\tldp x27, x28, [sp, #64]\n"
        "\tldp x29, x30, [sp, #80]\n"
        "\tldp d8, d9, [sp, #96]\n"
        "\tldp d10, d11, [sp, #112]\n"
        "\tldp d12, d13, [sp, #128]\n"
        "\tldp d14, d15, [sp, #144]\n"
        "\tadd sp, sp, #160\n"
        "\tret\n"
        ".size metafork_cpu_switch,.-metafork_cpu_switch\n"
        ".popsection\n");
#endif
#endif

struct uint3 {
    unsigned int x, y, z;
};
struct dim3 {
    unsigned int x, y, z;
};

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)

static thread_local uint3 threadIdx;
static thread_local uint3 blockIdx;
static thread_local dim3 blockDim;
static thread_local dim3 gridDim;

namespace metafork_cpu {

/* The block that runs now. */
struct block_state {
    const char *kernel;
    void (*thread)(const void *closure);
    const void *closure;
    unsigned char *shared;
    int64_t shared_bytes;
    unsigned threads;     /* threads of a block */
    unsigned next_thread; /* the first that has not begun */
    unsigned fibers;      /* fibers begun in this block */
    unsigned current;     /* the fiber that runs */
    unsigned arrived;     /* threads at the barrier of this round */
    unsigned finished;    /* threads that ran to their end */
    int line;             /* where the first thread of this round met the barrier */
    bool reverse;
    /* The warp that shuffles now. */
    unsigned lanes;        /* lanes that have handed in their value */
    unsigned warp;         /* the warp's number */
    unsigned first_fiber;  /* the fiber of the first of them */
    int shuffle_line;      /* where it met the shuffle */
    unsigned buffer;       /* which half of `values` is filled: a fast lane may hand in its next value before a slow one reads */
    uint64_t values[2][32];
    /* Asynchronous copies on their way. */
    struct copy *copies;
    size_t copying, copies_capacity;
    bool early;
};

struct copy {
    void *to;
    const void *from;
    size_t bytes;
    unsigned thread;
};

static thread_local block_state *running;

[[noreturn]] __attribute__((unused, noinline)) static void fault(const char *what) {
    const block_state *block = running;
    fflush(stdout);
    fprintf(stderr, "metafork: %s: %s, block (%u, %u, %u), thread (%u, %u, %u)\n", block ? block->kernel : "?", what, blockIdx.x,
            blockIdx.y, blockIdx.z, threadIdx.x, threadIdx.y, threadIdx.z);
    abort();
}

/* ---- contexts: index -1 is the caller of run_block, the others are fibers on stacks of one arena ---- */

#if defined(METAFORK_CPU_UCONTEXT)
typedef ucontext_t context;
#else
typedef void *context;
#endif

struct arena {
    unsigned capacity;
    unsigned char *stacks;
    context *contexts; /* one a fiber */
    void **fake_stacks;
};

static thread_local arena *stacks_of_block;
static thread_local context caller_context;
#if defined(METAFORK_ASAN)
static thread_local void *caller_fake_stack;
static thread_local const void *caller_stack;
static thread_local size_t caller_stack_size;
#endif

static inline unsigned char *stack_of(unsigned fiber) {
    return stacks_of_block->stacks + (size_t)fiber * METAFORK_CPU_STACK_BYTES;
}

/* One arena is kept between launches; a launch takes it out, so that host threads never share it. */
static arena *kept_arena;

static inline size_t page_bytes() { return 4096; }

static inline void release_arena(arena *old) {
    if (old == nullptr) return;
    arena *none = nullptr;
    if (old->capacity != 0 && __atomic_compare_exchange_n(&kept_arena, &none, old, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
    if (old->capacity != 0) munmap(old->stacks, (size_t)old->capacity * METAFORK_CPU_STACK_BYTES);
    free(old->contexts);
    free(old->fake_stacks);
    free(old);
}

static inline arena *take_arena(unsigned capacity) {
    arena *found = __atomic_exchange_n(&kept_arena, (arena *)nullptr, __ATOMIC_ACQ_REL);
    if (found != nullptr && found->capacity >= capacity) return found;
    if (found != nullptr) {
        munmap(found->stacks, (size_t)found->capacity * METAFORK_CPU_STACK_BYTES);
        free(found->contexts);
        free(found->fake_stacks);
        free(found);
    }
    found = (arena *)calloc(1, sizeof(arena));
    if (found == nullptr) return nullptr;
    found->contexts = (context *)calloc(capacity, sizeof(context));
    found->fake_stacks = (void **)calloc(capacity, sizeof(void *));
    const size_t bytes = (size_t)capacity * METAFORK_CPU_STACK_BYTES;
    void *memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED || found->contexts == nullptr || found->fake_stacks == nullptr) {
        if (memory != MAP_FAILED) munmap(memory, bytes);
        release_arena(found);
        return nullptr;
    }
    found->capacity = capacity;
    found->stacks = (unsigned char *)memory;
    /* A page that may not be touched below each stack: an overflow is a fault, not a wrong result. */
    for (unsigned fiber = 0; fiber < capacity; fiber++)
        mprotect(found->stacks + (size_t)fiber * METAFORK_CPU_STACK_BYTES, page_bytes(), PROT_NONE);
    return found;
}

METAFORK_NO_ASAN static void fiber_main();

/* Lay out a new fiber so that the switch to it begins fiber_main on its own stack. */
METAFORK_NO_ASAN static inline void prepare(unsigned fiber) {
#if defined(METAFORK_CPU_UCONTEXT)
    context *target = &stacks_of_block->contexts[fiber];
    getcontext(target);
    target->uc_stack.ss_sp = stack_of(fiber) + page_bytes();
    target->uc_stack.ss_size = METAFORK_CPU_STACK_BYTES - page_bytes();
    target->uc_link = nullptr;
    makecontext(target, fiber_main, 0);
#else
    /* Tops of stacks are staggered: at equal addresses modulo a page they would all share the same cache sets. */
    unsigned char *top = stack_of(fiber) + METAFORK_CPU_STACK_BYTES - 64 - (fiber % 61) * 192;
    top -= (uintptr_t)top % 16;
#if defined(__x86_64__)
    void **slots = (void **)top - 8;
    for (int slot = 0; slot < 6; slot++) slots[slot] = nullptr;
    slots[6] = (void *)fiber_main;
    slots[7] = nullptr; /* the return address that fiber_main never uses */
#else
    void **slots = (void **)top - 20;
    for (int slot = 0; slot < 20; slot++) slots[slot] = nullptr;
    slots[11] = (void *)fiber_main;
#endif
    stacks_of_block->contexts[fiber] = (void *)slots;
#endif
}

/* Go on at fiber `to` (-1: the caller of run_block).  `ends`: the fiber that leaves will not be resumed. */
METAFORK_NO_ASAN static inline void go(int from, int to, bool ends) {
    arena *all = stacks_of_block;
#if defined(METAFORK_ASAN)
    void **fake = from < 0 ? &caller_fake_stack : &all->fake_stacks[from];
    const void *bottom = to < 0 ? caller_stack : stack_of((unsigned)to);
    const size_t size = to < 0 ? caller_stack_size : (size_t)METAFORK_CPU_STACK_BYTES;
    __sanitizer_start_switch_fiber(ends ? nullptr : fake, bottom, size);
#else
    (void)ends;
#endif
    context *source = from < 0 ? &caller_context : &all->contexts[from];
    context *target = to < 0 ? &caller_context : &all->contexts[to];
#if defined(METAFORK_CPU_UCONTEXT)
    swapcontext(source, target);
#else
    metafork_cpu_switch(source, *target);
#endif
#if defined(METAFORK_ASAN)
    /* Back again; only a fiber that came from the caller learns the caller's stack, in fiber_main. */
    __sanitizer_finish_switch_fiber(from < 0 ? caller_fake_stack : all->fake_stacks[from], nullptr, nullptr);
#endif
}

static inline void set_thread(const block_state *block, unsigned number) {
    const unsigned thread = block->reverse ? block->threads - 1 - number : number;
    threadIdx.x = thread % blockDim.x;
    threadIdx.y = thread / blockDim.x % blockDim.y;
    threadIdx.z = thread / blockDim.x / blockDim.y;
}

static inline unsigned thread_number() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

static inline unsigned warp_of_thread() { return thread_number() / 32; }

METAFORK_NO_ASAN static void fiber_main() {
    block_state *block = running;
    const unsigned self = block->current;
#if defined(METAFORK_ASAN)
    if (self == 0)
        __sanitizer_finish_switch_fiber(nullptr, &caller_stack, &caller_stack_size);
    else
        __sanitizer_finish_switch_fiber(nullptr, nullptr, nullptr);
#endif
    while (block->next_thread < block->threads) {
        set_thread(block, block->next_thread++);
        block->thread(block->closure);
        block->finished++;
        if (block->arrived != 0) fault("a thread ends while others of its block wait at a barrier");
        if (block->lanes != 0 && block->warp == warp_of_thread()) fault("a thread ends while others of its warp wait at a shuffle");
    }
    if (self + 1 < block->fibers) {
        block->current = self + 1;
        go((int)self, (int)self + 1, true);
    }
    go((int)self, -1, true);
    abort();
}

/* __syncthreads(): wait until every thread of the block has come here. */
__attribute__((noinline, unused)) static void barrier(int line) {
    block_state *block = running;
    if (block->threads == 1) return;
    const unsigned self = block->current;
    const uint3 thread = threadIdx;
    if (block->finished != 0) fault("a thread waits at a barrier that another thread of its block never reached");
    if (block->lanes != 0) fault("a thread waits at a barrier while the lanes of a warp wait at a shuffle");
    if (block->arrived++ == 0)
        block->line = line;
    else if (block->line != line)
        fault("threads of one block wait at different barriers");
    unsigned next = self + 1;
    if (block->arrived == block->threads) {
        block->arrived = 0;
        next = 0;
    } else if (next == block->fibers) {
        block->fibers++;
        prepare(next);
    }
    block->current = next;
    go((int)self, (int)next, false);
    threadIdx = thread;
}

/* __shfl_sync of a whole warp: what lane `source` of this thread's group of `width` lanes hands in at the same shuffle. */
template <class Value>
__attribute__((noinline, unused)) static Value shuffle(unsigned mask, Value value, int line, int source, int width = 32) {
    static_assert(sizeof(Value) == 4 || sizeof(Value) == 8, "a shuffle moves 32 or 64 bits");
    if (mask != 0xffffffffu) fault("a shuffle of a part of a warp");
    block_state *block = running;
    const unsigned self = block->current;
    const uint3 thread = threadIdx;
    const unsigned buffer = block->buffer, lane = thread_number() % 32;
    if (block->lanes == 0) {
        block->warp = warp_of_thread();
        block->first_fiber = self;
        block->shuffle_line = line;
    } else if (block->warp != warp_of_thread()) {
        fault("a thread of another warp is reached while some lanes of a warp wait at a shuffle");
    } else if (block->shuffle_line != line) {
        fault("threads of one warp wait at different shuffles");
    }
    memcpy(&block->values[buffer][lane], &value, sizeof value);
    unsigned next = self + 1;
    if (++block->lanes == 32) {
        block->lanes = 0;
        block->buffer = 1 - buffer;
        next = block->first_fiber;
    } else if (next == block->fibers) {
        if (block->next_thread == block->threads) fault("a shuffle that some lanes of the warp do not reach");
        block->fibers++;
        prepare(next);
    }
    block->current = next;
    go((int)self, (int)next, false);
    threadIdx = thread;
    const unsigned group = (unsigned)width - 1;
    memcpy(&value, &block->values[buffer][(lane & ~group) + ((unsigned)source & group)], sizeof value);
    return value;
}

/* Begin to copy from global to shared memory. */
__attribute__((noinline, unused)) static void copy_later(void *to, const void *from, size_t bytes) {
    block_state *block = running;
    if (((uintptr_t)to | (uintptr_t)from) % bytes != 0) fault("elements that are copied asynchronously are not aligned");
    if (block->early) {
        memcpy(to, from, bytes);
        return;
    }
    if (block->copying == block->copies_capacity) {
        block->copies_capacity = 2 * block->copies_capacity + 64;
        block->copies = (copy *)realloc(block->copies, block->copies_capacity * sizeof(copy));
        if (block->copies == nullptr) fault("no memory for asynchronous copies");
    }
    block->copies[block->copying++] = {to, from, bytes, thread_number()};
}

/* Wait for the asynchronous copies of this thread. */
__attribute__((noinline, unused)) static void await_copies() {
    block_state *block = running;
    const unsigned thread = thread_number();
    size_t left = 0;
    for (size_t number = 0; number < block->copying; number++) {
        const copy one = block->copies[number];
        if (one.thread == thread)
            memcpy(one.to, one.from, one.bytes);
        else
            block->copies[left++] = one;
    }
    block->copying = left;
}

static inline void run_block(block_state *block) {
    block->next_thread = 0;
    block->fibers = 1;
    block->current = 0;
    block->arrived = 0;
    block->finished = 0;
    block->lanes = 0;
#if defined(METAFORK_CHECK)
    if (block->shared_bytes > 0) memset(block->shared, 0xff, (size_t)block->shared_bytes);
#endif
    prepare(0);
    go(-1, 0, false);
    if (block->copying != 0) fault("a block ends before its asynchronous copies do");
}

template <class Thread> static void call_thread(const void *closure) { (*static_cast<const Thread *>(closure))(); }

/* Run `thread`, a function object without arguments, for every thread of every block.  Returns whether memory sufficed. */
template <class Thread> static bool launch(const char *kernel, dim3 grid, dim3 block, int64_t shared_bytes, const Thread &thread) {
    const unsigned threads = block.x * block.y * block.z;
    const char *order = getenv("METAFORK_CPU_ORDER");
    block_state state = {};
    state.kernel = kernel;
    state.thread = call_thread<Thread>;
    state.closure = &thread;
    state.shared_bytes = shared_bytes;
    state.threads = threads;
    state.reverse = order != nullptr && strcmp(order, "reverse") == 0;
    const char *copies = getenv("METAFORK_CPU_COPIES");
    state.early = copies != nullptr && strcmp(copies, "early") == 0;
    block_state *const outer = running;
    arena *const outer_stacks = stacks_of_block;
    stacks_of_block = take_arena(threads);
    state.shared = shared_bytes > 0 ? (unsigned char *)malloc((size_t)shared_bytes) : nullptr;
    const bool enough = stacks_of_block != nullptr && (shared_bytes <= 0 || state.shared != nullptr);
    if (enough) {
        running = &state;
        gridDim = grid;
        blockDim = block;
        const uint64_t blocks = (uint64_t)grid.x * grid.y * grid.z;
        for (uint64_t number = 0; number < blocks; number++) {
            const uint64_t place = state.reverse ? blocks - 1 - number : number;
            blockIdx.x = (unsigned)(place % grid.x);
            blockIdx.y = (unsigned)(place / grid.x % grid.y);
            blockIdx.z = (unsigned)(place / grid.x / grid.y);
            run_block(&state);
        }
    }
    free(state.shared);
    free(state.copies);
    release_arena(stacks_of_block);
    stacks_of_block = outer_stacks;
    running = outer;
    return enough;
}

static inline unsigned char *shared_base() { return running->shared; }

/* Each file has its own `running`, so what uses it may not be one function for all files of a program. */
namespace {

/* An array in shared memory whose every access is checked (METAFORK_CHECK).  It need not lie there where nobody touches it: in a
 * branch that no block goes into its size may be below 0. */
template <class Element> struct checked_array {
    Element *first;
    long long offset, elements, extent;
    const char *name;

    checked_array(unsigned char *base, long long its_offset, long long its_elements, const char *its_name)
        : first(reinterpret_cast<Element *>(base + its_offset)), offset(its_offset), elements(its_elements), extent(0), name(its_name) {
        const long long size = (long long)sizeof(Element);
        const bool aligned = offset >= 0 && offset % (long long)alignof(Element) == 0;
        if (aligned && elements <= (running->shared_bytes - offset) / size) extent = elements < 0 ? 0 : elements;
        else if (elements >= 0) extent = -1;
    }

    template <class Index> Element &operator[](Index index) const {
        const bool negative = extent < 0 || ((Index)-1 <= (Index)1 && (long long)index < 0);
        if (negative || (unsigned long long)index >= (unsigned long long)extent) outside((long long)index);
        return first[index];
    }

    [[noreturn]] __attribute__((noinline)) void outside(long long index) const {
        char text[256];
        if (extent < 0) {
            snprintf(text, sizeof text, "shared array %s (%lld elements of %lld bytes at byte %lld) does not lie in the %lld bytes launched",
                     name, elements, (long long)sizeof(Element), offset, (long long)running->shared_bytes);
            fault(text);
        }
        snprintf(text, sizeof text, "%s[%lld] is outside of its %lld elements of shared memory", name, index, extent);
        fault(text);
    }
};

} // namespace
} // namespace metafork_cpu

#define __syncthreads() metafork_cpu::barrier(__LINE__)
#define __shfl_sync(mask, value, ...) metafork_cpu::shuffle((mask), (value), __LINE__, __VA_ARGS__)
#define __syncwarp() (void)metafork_cpu::shuffle(0xffffffffu, 0, __LINE__, 0)

#endif
