// More threads than there are streams for, each with arrays of its own: what they get, and that all of them are right.  Then
// as many threads as there are streams for, on one device after the other.
#define METAFORK_TARGET_HEADER "late_target.h"
#define METAFORK_BUFFER_BYTES 256
#include "metafork/residents.h"
#include <thread>

enum { COUNT = 300, BYTES = 4 * COUNT, THREADS = 20, ROUNDS = 40 };

static void schedule(int *a, int *b, int more)
{
    void *hosts[] = {a, b}, *pointers[2], *stream;
    const int64_t bytes[] = {BYTES, BYTES};
    const char *const names[] = {"a", "b"};
    const bool written[] = {false, true};
    metafork_effect effects[2] = {};
    effects[1].written = effects[1].exact = effects[1].overwritten = true;
    (void)metafork_include(&effects[1].sure, metafork_stretch(0, BYTES));
    if (metafork_bring(0, hosts, bytes, names, effects, 2, pointers) != METAFORK_OK || metafork_launch_begins(hosts, bytes, 2, &stream) != METAFORK_OK) exit(4);
    int *const from = (int *)pointers[0], *const to = (int *)pointers[1];
    const auto run = [=] {
        for (int i = 0; i < COUNT; i++) to[i] = from[i] + more;
    };
    if (stream != nullptr)
        late::begin((late::Stream *)stream, run, {{(const char *)from, BYTES}, {(const char *)to, BYTES}});
    else
        run();
    if (metafork_launch_ends("s", hosts, bytes, written, 2) != METAFORK_OK) exit(4);
    metafork_written(b, BYTES, &effects[1]);
}

static void work(int thread)
{
    std::vector<int> a(COUNT), b(COUNT);
    for (int round = 0; round < ROUNDS; round++) {
        const char frame = metafork_enter();
        for (int i = 0; i < COUNT; i++) a[i] = thread * 1000 + i + round;
        schedule(a.data(), b.data(), 1);
        metafork_touch(a.data(), 40, 4, METAFORK_WRITES);
        a[10] = 7;
        schedule(a.data(), b.data(), 2);
        metafork_leave(&frame);
        for (int i = 0; i < COUNT; i++)
            if (b[i] != (i == 10 ? 7 : thread * 1000 + i + round) + 2) exit(1);
    }
}

int main()
{
    std::vector<std::thread> all;
    for (int thread = 0; thread < THREADS; thread++) all.emplace_back(work, thread);
    for (std::thread &one : all) one.join();
    for (const void *const owner : metafork_streams_of_process()->owners)
        if (owner != nullptr) return 2;
    static char owners[METAFORK_MOST_STREAMS];
    for (int device = 0; device < 3; device++) {
        for (char &owner : owners) {
            const metafork_streams *const one = metafork_streams_take(&owner, device);
            if (one == nullptr || one->device != device || metafork_streams_take(&owner, device) != one) return 3;
        }
        for (char &owner : owners) metafork_streams_leave(&owner);
    }
}
