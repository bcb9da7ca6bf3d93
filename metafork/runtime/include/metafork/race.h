/* Which thread touched which element: data races and uninitialised shared memory, found while kernels run on the host.
 *
 * `metafork verify` compiles kernels with every access spelled a[METAFORK_READS(a, i)] or a[METAFORK_WRITES(a, i)] and with
 * METAFORK_ENTERS() as the first thing a thread does.  Two accesses of one element race when one of them writes and they
 * are made by threads of one block between the same two barriers, or by different blocks anywhere in a launch.  An element
 * of shared memory that no thread of the block has written may not be read.
 *
 * Filling a window of shared memory may read more elements than the block uses: those in gaps and behind guards.  So a
 * copy from global to shared memory, s[METAFORK_TAKES(s, i)] = a[METAFORK_COPIES(a, j)], counts as a read of the global
 * element (made when and by whom it was copied) only once the copy is read.
 *
 * Atomic updates, a[METAFORK_ATOMICS(a, i, kind)], do not race with each other where they are of one kind.
 *
 * A side of a condition begins with METAFORK_BRANCH(number); a program says on stderr which ones are taken, each once.
 *
 * CPU build only; include after metafork/device.h and link with the C++ library.
 */
#ifndef METAFORK_RACE_H
#define METAFORK_RACE_H

#if !defined(METAFORK_CPU)
#error "metafork/race.h is for the CPU build"
#endif

#include <unordered_map>
#include <vector>

/* Each file has its own blocks (metafork/cpu_blocks.h), and so its own state. */
namespace metafork_race {
namespace {

constexpr long long NOBODY = -1, SEVERAL = -2;

/* Who touched an element last: blocks by their number in the launch, threads by theirs in the block, and the number of
 * barriers that the thread had passed. */
struct history {
    long long write_block = NOBODY, write_thread = NOBODY, write_epoch = 0;
    long long read_block = NOBODY, read_thread = NOBODY, read_epoch = 0;
    long long atomic_block = NOBODY, atomic_thread = NOBODY, atomic_epoch = 0;
    int atomic_kind = 0; /* 0: several kinds, all by one thread or in one stretch each */
};

/* A copy from global to shared memory that nobody has read yet. */
struct copy {
    const void *from = nullptr;
    const char *name = nullptr;
    long long index = 0, thread = 0, epoch = 0;
    history then; /* of the global element when it was copied */
};

struct launch_state {
    std::unordered_map<const void *, history> global, shared;
    std::unordered_map<const void *, copy> copies; /* by the shared element that holds them */
    copy taken;                                    /* on its way into one */
    std::vector<long long> epochs; /* barriers passed, by thread of the block */
    unsigned long long entered = 0;
    long long block = NOBODY;
};

inline launch_state &state() {
    static launch_state the_state;
    return the_state;
}

inline unsigned long long threads_of_block() { return 1ull * blockDim.x * blockDim.y * blockDim.z; }

inline unsigned this_thread() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

/* A thread begins.  Blocks run one after the other, and all threads of a block begin before the next block does. */
inline int enters() {
    launch_state &now = state();
    const unsigned long long threads = threads_of_block(), all = threads * gridDim.x * gridDim.y * gridDim.z;
    if (now.entered == 0) now.global.clear();
    if (now.entered % threads == 0) {
        now.block = (long long)(now.entered / threads);
        now.shared.clear();
        now.copies.clear();
        now.epochs.assign(threads, 0);
    }
    if (++now.entered == all) now.entered = 0; /* the last thread of the launch */
    return 0;
}

[[noreturn]] inline void race(const char *name, long long index, const char *what, long long block, long long thread) {
    char text[256];
    if (block == SEVERAL || thread == SEVERAL)
        snprintf(text, sizeof text, "data race: %s[%lld] is %s by several other threads", name, index, what);
    else
        snprintf(text, sizeof text, "data race: %s[%lld] is %s by thread %lld of block %lld", name, index, what, thread, block);
    metafork_cpu::fault(text);
}

inline bool is_shared(const void *address) {
    const unsigned char *base = metafork_cpu::running->shared;
    return base != nullptr && address >= base && address < base + metafork_cpu::running->shared_bytes;
}

/* Report a write that the thread's access at `epoch` races with. */
inline void check_write(const history &past, const char *name, long long index, long long block, long long thread, long long epoch, bool writes) {
    if (past.write_block != NOBODY && (past.write_block != block || (past.write_thread != thread && past.write_epoch == epoch)))
        race(name, index, writes ? "written too" : "written", past.write_block, past.write_thread);
}

/* Report a read that the thread's write at `epoch` races with. */
inline void check_read(const history &past, const char *name, long long index, long long block, long long thread, long long epoch) {
    const bool other_block = past.read_block != NOBODY && past.read_block != block;
    const bool other_thread = past.read_block == block && past.read_epoch == epoch && past.read_thread != thread;
    if (other_block || other_thread) race(name, index, "read", past.read_block, past.read_thread);
}

inline void check_initialised(const history &past, const char *name, long long index) {
    if (past.write_block != NOBODY) return;
    char text[256];
    snprintf(text, sizeof text, "uninitialised: %s[%lld] is read before any thread of the block has written it", name, index);
    metafork_cpu::fault(text);
}

inline void note_read(history &past, long long block, long long thread, long long epoch) {
    if (past.read_block != NOBODY && past.read_block != block)
        past.read_block = SEVERAL;
    else if (past.read_block == block && past.read_epoch == epoch && past.read_thread != thread)
        past.read_thread = SEVERAL;
    else if (past.read_block != SEVERAL) {
        past.read_block = block;
        past.read_thread = thread;
        past.read_epoch = epoch;
    }
}

/* Report an atomic update that the thread's access at `epoch` races with. */
inline void check_atomic(const history &past, const char *name, long long index, long long block, long long thread, long long epoch) {
    if (past.atomic_block == NOBODY) return;
    if (past.atomic_block != block || (past.atomic_epoch == epoch && past.atomic_thread != thread))
        race(name, index, "updated atomically", past.atomic_block, past.atomic_thread);
}

inline void note_atomic(history &past, int kind, long long block, long long thread, long long epoch) {
    if (past.atomic_block != NOBODY && past.atomic_block != block)
        past.atomic_block = SEVERAL;
    else if (past.atomic_block == block && past.atomic_epoch == epoch && past.atomic_thread != thread)
        past.atomic_thread = SEVERAL;
    else if (past.atomic_block != SEVERAL) {
        const bool again = past.atomic_block == block;
        past.atomic_kind = again && past.atomic_kind != kind ? 0 : kind;
        past.atomic_block = block;
        past.atomic_thread = thread;
        past.atomic_epoch = epoch;
    }
}

inline void touch(const void *address, const char *name, long long index, bool reads, bool writes) {
    launch_state &now = state();
    const bool shared = is_shared(address);
    const long long block = now.block, thread = this_thread(), epoch = now.epochs[(size_t)thread];
    history &past = (shared ? now.shared : now.global)[address];
    if (reads && shared) {
        check_initialised(past, name, index);
        const auto held = now.copies.find(address);
        if (held != now.copies.end()) {
            const copy &used = held->second;
            history &source = now.global[used.from];
            check_write(used.then, used.name, used.index, block, used.thread, used.epoch, false);
            check_write(source, used.name, used.index, block, used.thread, used.epoch, false);
            note_read(source, block, used.thread, used.epoch);
            now.copies.erase(held);
        }
    }
    check_write(past, name, index, block, thread, epoch, writes);
    check_atomic(past, name, index, block, thread, epoch);
    if (writes) {
        check_read(past, name, index, block, thread, epoch);
        past.write_block = block;
        past.write_thread = thread;
        past.write_epoch = epoch;
        if (shared) now.copies.erase(address);
    }
    if (reads) note_read(past, block, thread, epoch);
}

template <class Memory> inline long long atomics(const Memory &memory, const char *name, long long index, int kind) {
    launch_state &now = state();
    const void *const address = &memory[index];
    const bool shared = is_shared(address);
    const long long block = now.block, thread = this_thread(), epoch = now.epochs[(size_t)thread];
    history &past = (shared ? now.shared : now.global)[address];
    if (shared) check_initialised(past, name, index);
    check_write(past, name, index, block, thread, epoch, true);
    check_read(past, name, index, block, thread, epoch);
    if (past.atomic_kind != kind) check_atomic(past, name, index, block, thread, epoch);
    note_atomic(past, kind, block, thread, epoch);
    return index;
}

template <class Memory> inline long long copies(const Memory &memory, const char *name, long long index) {
    launch_state &now = state();
    const long long thread = this_thread();
    now.taken = {&memory[index], name, index, thread, now.epochs[(size_t)thread], now.global[&memory[index]]};
    return index;
}

template <class Memory> inline long long takes(const Memory &memory, const char *name, long long index) {
    touch(&memory[index], name, index, false, true);
    state().copies[&memory[index]] = state().taken;
    return index;
}

template <class Memory> inline long long reads(const Memory &memory, const char *name, long long index) {
    touch(&memory[index], name, index, true, false);
    return index;
}

template <class Memory> inline long long writes(const Memory &memory, const char *name, long long index) {
    touch(&memory[index], name, index, false, true);
    return index;
}

template <class Memory> inline long long updates(const Memory &memory, const char *name, long long index) {
    touch(&memory[index], name, index, true, true);
    return index;
}

/* A branch of a kernel, whose text is a function with another name, is taken for the first time. */
inline int takes_branch(const char *text, int number) {
    fprintf(stderr, "branch %.*s %d\n", (int)(strlen(text) - strlen("_text")), text, number);
    return 0;
}

inline void passed() { state().epochs[this_thread()]++; }

} // namespace
} // namespace metafork_race

#define METAFORK_ENTERS() metafork_race::enters()
#define METAFORK_READS(memory, index) metafork_race::reads(memory, #memory, (long long)(index))
#define METAFORK_WRITES(memory, index) metafork_race::writes(memory, #memory, (long long)(index))
#define METAFORK_COPIES(memory, index) metafork_race::copies(memory, #memory, (long long)(index))
#define METAFORK_TAKES(memory, index) metafork_race::takes(memory, #memory, (long long)(index))
#define METAFORK_UPDATES(memory, index) metafork_race::updates(memory, #memory, (long long)(index))

#define METAFORK_ATOMICS(memory, index, kind) metafork_race::atomics(memory, #memory, (long long)(index), kind)
#define METAFORK_BRANCH(number) \
    ({ static bool metafork_taken; metafork_taken ? 0 : (metafork_taken = true, metafork_race::takes_branch(__func__, (number))); })

#undef __syncthreads
#define __syncthreads() (metafork_cpu::barrier(__LINE__), metafork_race::passed())

#endif
