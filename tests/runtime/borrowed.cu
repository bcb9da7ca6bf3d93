// Arrays of the caller's on the device: random launches and touches of host code between metafork_borrow and metafork_give_back,
// against what the bytes must be.  Copies and kernels take effect late (late_streams.h).  Kernels of the caller's stand before and
// behind, on its own streams, and an array of the host's is kept meanwhile.  PLANTED=3: the third fault of the test is there.
#define METAFORK_TARGET_HEADER "late_target.h"
#define METAFORK_BUFFER_BYTES 128
int planted; // the number of the wait that is left out
#include "late_streams.h"
#include "metafork/residents.h"

#include "metafork/borrowed.h"

enum { SIZE = 300, ARRAYS = 4 };
static unsigned char memory[2][SIZE];    // of the device: the arrays 0 and 1 are parts of the first, which overlap
static unsigned char kept[SIZE];         // of the host
static unsigned char truth[3][SIZE];
static bool evicted[2];                  // by this call
static unsigned long long state;

static int below(int n)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (int)((state >> 33) % (unsigned long long)n);
}

static void differs(const char *what, int which, int at, int found, int wanted)
{
    printf("%s: array %d: byte %d is %d, not %d\n", what, which, at, found, wanted);
    fflush(stdout);
    _Exit(1);
}

// A kernel that reads some bytes of an array and writes others: what it finds when it runs must be what is there by then.
static std::function<void()> kernel(int which, unsigned char *now, int first, int behind, bool writes)
{
    const std::vector<unsigned char> before(truth[which] + first, truth[which] + behind);
    std::vector<unsigned char> after = before;
    for (unsigned char &one : after) one = writes ? (unsigned char)below(256) : one;
    std::copy(after.begin(), after.end(), truth[which] + first);
    return [=] {
        for (size_t i = 0; i < before.size(); i++)
            if (now[i] != before[i]) differs("a kernel", which, first + (int)i, now[i], before[i]);
        std::copy(after.begin(), after.end(), now);
    };
}

static void launch(int which, unsigned char *host, int first, int behind)
{
    void *hosts[1] = {host + first}, *pointers[1] = {}, *stream;
    const int64_t bytes[1] = {behind - first};
    const char *names[1] = {"a"};
    const bool written[1] = {below(3) != 0};
    metafork_effect effects[1] = {};
    effects[0].written = written[0];
    effects[0].exact = below(2) != 0;
    effects[0].compared = written[0] && !effects[0].exact;
    if (written[0] && effects[0].exact) (void)metafork_include(&effects[0].sure, metafork_stretch(0, bytes[0]));
    if (metafork_bring(0, hosts, bytes, names, effects, 1, pointers) != METAFORK_OK) exit(2);
    if (which < 2 && !evicted[which] && pointers[0] != memory[which] + first) exit(3); // it was copied
    if (metafork_launch_begins(hosts, bytes, 1, &stream) != METAFORK_OK) exit(2);
    const auto all = kernel(which, static_cast<unsigned char *>(pointers[0]), first, behind, written[0]);
    if (stream != nullptr)
        late::begin((late::Stream *)stream, all, {{(const char *)pointers[0], (size_t)bytes[0]}});
    else
        all();
    if (metafork_launch_ends("s", hosts, bytes, written, 1) != METAFORK_OK) exit(2);
    metafork_written(hosts[0], bytes[0], &effects[0]);
}

static void touch(int which, unsigned char *host, int first, int behind, int how)
{
    metafork_touch(host, first, behind - first, how);
    for (int i = first; i < behind; i++) {
        if ((how & METAFORK_READS) != 0 && host[i] != truth[which][i]) differs("the host", which, i, host[i], truth[which][i]);
        if ((how & METAFORK_WRITES) != 0) host[i] = truth[which][i] = (unsigned char)below(256);
    }
}

// A kernel of the caller's on a whole memory, behind its last one.
static void use(int which, late::Stream *stream, late::Stream **last, bool writes)
{
    late::Event event;
    late::record(&event, *last);
    if (*last != stream) late::follow(stream, &event);
    late::begin(stream, kernel(which, memory[which], 0, SIZE, writes), {{(const char *)memory[which], SIZE}});
    *last = stream;
}

int main(int argc, char **argv)
{
    state = (unsigned long long)atoll(argv[argc - 1]);
    if (getenv("PLANTED") != nullptr) planted = atoi(getenv("PLANTED"));
    late::Stream *const streams[2] = {late::make(), late::make()};
    metafork_keep(kept);
    late::Stream *last[2] = {streams[0], streams[0]}; // which has the last work on a memory
    for (int call = 0; call < 300; call++) {
        late::Stream *const own = streams[below(2)];
        const int only = below(3); // which memory is lent alone
        void *of[ARRAYS] = {own, own, own, own}, *hosts[ARRAYS], *starts[ARRAYS] = {memory[0], memory[0] + 100, memory[1], nullptr};
        long long bytes[ARRAYS] = {200, SIZE - 100, SIZE, 0};
        const bool evicts = below(10) == 0;
        evicted[0] = evicted[1] = false;
        for (int k = below(3); k > 0; k--) below(2) ? launch(2, kept, below(SIZE), SIZE) : touch(2, kept, below(SIZE), SIZE, METAFORK_UPDATES);
        for (int which = 0; which < 2; which++) {
            if (only == 1 - which) {
                for (int i = 2 * which; i < 2 * which + 2; i++) bytes[i] = 0;
                continue;
            }
            use(which, streams[below(2)], &last[which], true);
            for (int i = 2 * which; i < 2 * which + 2; i++) of[i] = last[which];
        }
        const char frame = metafork_enter();
        if (metafork_borrow(0, own, ARRAYS, starts, bytes, of, hosts) != nullptr) exit(4);
        if (metafork_borrow(1, own, 0, starts, bytes, of, hosts) == nullptr) exit(5);
        if (only != 1 && (char *)hosts[1] != (char *)hosts[0] + 100) exit(6);
        for (int step = below(12); step > 0; step--) {
            const int which = below(3), first = below(SIZE), behind = first + 1 + below(SIZE - first);
            unsigned char *const host = which == 2 ? kept : static_cast<unsigned char *>(hosts[2 * which]);
            if (which == 1 - only) continue;
            switch (below(evicts ? 6 : 4)) {
            case 0: touch(which, host, first, behind, METAFORK_READS); break;
            case 1: touch(which, host, first, first + 1 + (behind - first) / 20, METAFORK_WRITES); break;
            case 2: touch(which, host, first, behind, METAFORK_UPDATES); break;
            case 3: launch(which, host, first, behind); break;
            case 4: metafork_settle(); break;
            case 5: // the host has all of it from then on
                if (which == 2) break;
                metafork_drop(host);
                evicted[which] = true;
                touch(which, host, first, behind, METAFORK_UPDATES);
                break;
            }
        }
        metafork_leave(&frame);
        if (metafork_give_back() != nullptr) exit(7);
        for (int which = 0; which < 2; which++)
            if (only != 1 - which) last[which] = own, use(which, own, &last[which], below(2) != 0);
    }
    metafork_drop(kept);
    for (late::Stream *const one : streams) late::finish(one);
    for (int i = 0; i < SIZE; i++)
        if (kept[i] != truth[2][i]) differs("the end", 2, i, kept[i], truth[2][i]);
    metafork_streams_end();
    for (late::Stream *const one : streams) late::end(one);
    const metafork_residents *const all = metafork_residents_of_thread();
    return all->count + all->loan_count;
}
