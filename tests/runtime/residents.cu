// Which side is newer: random touches, launches and calls on one buffer, against what the bytes must be.  Copies and kernels take
// effect late (late_streams.h), and the buffers of pinned memory are small.  Other threads write some bytes at any time, which
// must not be lost.  PLANTED=3: the third fault of the test is there.
#define METAFORK_TARGET_HEADER "late_target.h"
#define METAFORK_BUFFER_BYTES buffer_bytes
static long long buffer_bytes;
int planted; // the number of the wait that is left out
#include "late_streams.h"
#include <stdlib.h>
#include <string.h>

static long long most_bytes = 1ll << 40; // of one copy on the device
static int room = 1 << 30;               // how many copies fit
static int allocated;
static void *limited(size_t size)
{
    if ((long long)size > most_bytes || allocated >= room) return nullptr;
    allocated++;
    return malloc(size);
}
static void release(void *memory)
{
    allocated -= memory != nullptr;
    free(memory);
}
#define malloc limited
#define free release
#include "metafork/arrays.h"
#undef malloc
#undef free
#include "metafork/residents.h"

enum { SIZE = 400, MOST = 4 };
alignas(64) static unsigned char data[SIZE];
static unsigned char truth[SIZE];
static unsigned long long state;

static int below(int n)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (int)((state >> 33) % (unsigned long long)n);
}

static void check(int first, int behind, const char *what, int step)
{
    for (int i = first; i < behind; i++)
        if (data[i] != truth[i]) {
            printf("step %d: %s: byte %d is %d, not %d\n", step, what, i, data[i], truth[i]);
            exit(1);
        }
}

// Rows of a rectangle, or of a box, whose distances may have nothing to do with each other.
struct Steps {
    int first, width, rank;
    long long steps[6];
    template <class Each> void each(const Each &what) const
    {
        long long counts[3] = {1, 1, 1}, strides[3] = {0, 0, 0};
        for (int i = 0; i < rank; i++) strides[i] = steps[2 * i], counts[i] = steps[2 * i + 1];
        for (long long a = 0; a < counts[0]; a++)
            for (long long b = 0; b < counts[1]; b++)
                for (long long c = 0; c < counts[2]; c++)
                    for (int i = 0; i < width; i++) what((int)(first + a * strides[0] + b * strides[1] + c * strides[2]) + i);
    }
};

static Steps some_steps()
{
    static const int distances[] = {1, 2, 4, 12, 20, 20, 20, 24, 40, 60, 100};
    for (;;) {
        Steps one = {below(SIZE), 1 + below(6), 1 + below(3), {}};
        bool inside = true;
        for (int i = 0; i < one.rank; i++) {
            one.steps[2 * i] = distances[below(11)] * (below(4) == 0 ? -1 : 1);
            one.steps[2 * i + 1] = below(12) == 0 ? -below(2) : 1 + below(below(2) ? 4 : 20);
        }
        one.each([&](int at) { inside = inside && at >= 0 && at < SIZE; });
        if (inside) return one;
    }
}

// What only other threads write; this one may as well where it says so.
static bool foreign(int at) { return at % 16 == 15; }

static void others_write()
{
    for (int k = 0; k < 3; k++) {
        const int at = below(SIZE / 16) * 16 + 15;
        data[at] = truth[at] = (unsigned char)below(256);
    }
}

// Rows that a launch surely overwrites, in an array that begins at `first`.
static metafork_rows some_rows(int first, int bytes)
{
    const int at = below(bytes), free = 15 - (first + at) % 16, most = free < bytes - at ? free : bytes - at, stride = 16 * (1 + below(2));
    metafork_rows rows = metafork_stretch(at, at + (most > 0 ? 1 + below(most) : 0));
    if (rows.width > 0 && at + stride + rows.width <= bytes) rows.stride = stride, rows.count = 1 + below((int)(bytes - at - rows.width) / stride + 1);
    if (rows.count == 1) rows.stride = rows.width;
    return rows;
}

static void launch(int step)
{
    const int count = 1 + below(MOST);
    void *hosts[MOST], *pointers[MOST] = {};
    int64_t bytes[MOST];
    const char *names[MOST] = {"a", "b", "c", "d"};
    const int writer = below(3) == 0 ? -1 : 0;
    for (int k = 0; k < count; k++) {
        const int first = below(SIZE / 20) * 20, most = SIZE - first;
        hosts[k] = data + first;
        bytes[k] = below(8) == 0 ? 0 : 1 + below(most);
    }
    if (writer == 0)
        for (int k = 1; k < count; k++)
            if (metafork_overlap((uintptr_t)hosts[0], bytes[0], (uintptr_t)hosts[k], bytes[k])) bytes[k] = 0;
    metafork_effect effects[MOST] = {};
    bool sure[SIZE] = {};
    if (writer == 0 && bytes[0] > 0) {
        metafork_effect &one = effects[0];
        one.written = true;
        one.exact = below(2) != 0;
        one.overwritten = below(2) != 0;
        one.later = below(2) != 0;
        const metafork_rows rows = some_rows((int)((unsigned char *)hosts[0] - data), (int)bytes[0]);
        if (below(3) != 0 && rows.width > 0 && metafork_include(&one.sure, rows))
            for (int64_t row = 0; row < rows.count; row++)
                for (int64_t i = 0; i < rows.width; i++) sure[rows.first + row * rows.stride + i] = true;
    }
    for (int k = 0; k < MOST; k++) effects[k].compared = below(8) == 0 || (effects[k].written && !effects[k].exact);
    const metafork_effect effect = effects[0];
    void *stream;
    if (metafork_bring(0, hosts, bytes, names, effects, count, pointers) != METAFORK_OK || metafork_launch_begins(hosts, bytes, count, &stream) != METAFORK_OK ||
        below(8) == 0) {
        // The serial code runs, also where it was the launch that failed.
        for (int k = 0; k < count; k++) metafork_touch(hosts[k], 0, bytes[k], k == writer ? METAFORK_UPDATES : METAFORK_READS);
        for (int k = 0; k < count; k++) check((int)((unsigned char *)hosts[k] - data), (int)((unsigned char *)hosts[k] - data + bytes[k]), "serial", step);
        return;
    }
    for (int k = 0; k < count; k++)
        if (bytes[k] > 0 && ((uintptr_t)hosts[k] ^ (uintptr_t)pointers[k]) % 16 != 0) {
            printf("step %d: array %d: what is at %p on the host is at %p on the device\n", step, k, hosts[k], pointers[k]);
            exit(1);
        }
    bool written[MOST] = {};
    std::vector<late::Range> uses;
    std::vector<std::function<void()>> parts;
    for (int k = 0; k < count; k++) {
        const int first = (int)((unsigned char *)hosts[k] - data);
        unsigned char *const now = static_cast<unsigned char *>(pointers[k]);
        if (bytes[k] <= 0) continue;
        written[k] = k == writer;
        uses.push_back({(const char *)now, (size_t)bytes[k]});
        const std::vector<unsigned char> before(truth + first, truth + first + bytes[k]);
        std::vector<unsigned char> after = before;
        if (written[k])
            for (size_t i = 0; i < after.size(); i++)
                if (sure[i] || (!effect.exact && !foreign(first + (int)i) && below(2))) after[i] = (unsigned char)below(256);
        const bool reads = !written[k] || !effect.overwritten;
        const bool exact = written[k] && effect.exact;
        const std::vector<bool> overwrites(sure, sure + bytes[k]);
        std::copy(after.begin(), after.end(), truth + first);
        parts.push_back([=] {
            for (size_t i = 0; i < before.size(); i++)
                if (reads && !foreign(first + (int)i) && now[i] != before[i]) {
                    printf("step %d: array %d: byte %d on the device is %d, not %d\n", step, k, first + (int)i, now[i], before[i]);
                    fflush(stdout);
                    _Exit(1);
                }
            for (size_t i = 0; i < after.size(); i++)
                if (overwrites[i] || (!exact && after[i] != before[i])) now[i] = after[i];
        });
    }
    const std::function<void()> all = [parts] {
        for (const auto &part : parts) part();
    };
    if (stream != nullptr)
        late::begin((late::Stream *)stream, all, uses);
    else
        all();
    if (metafork_launch_ends("s", hosts, bytes, written, count) != METAFORK_OK) exit(4);
    metafork_written(hosts[0], bytes[0], &effects[0]);
}

int main(int argc, char **argv)
{
    state = (unsigned long long)atoll(argv[1]);
    buffer_bytes = 64 << state % 4;
    if (getenv("PLANTED") != nullptr) planted = atoi(getenv("PLANTED"));
    if (argc > 2) room = atoi(argv[2]);
    if (argc > 3) most_bytes = atoll(argv[3]);
    const int rarely = atoll(argv[1]) % 2 == 0 ? 1 : 20; // with many touches in between
    bool kept = false;
    for (int step = 0; step < 4000; step++) {
        const int first = below(SIZE), length = below(3 * rarely) == 0 ? 1 + below(SIZE - first) : 1 + below(first + 4 < SIZE ? 4 : 1);
        others_write();
        switch (below(kept ? 10 : 9)) {
        case 0:
            metafork_touch(data, first, length, METAFORK_READS);
            check(first, first + length, "a read", step);
            break;
        case 1:
        case 2:
            metafork_touch(data, first, length, METAFORK_WRITES);
            for (int i = first; i < first + length; i++) data[i] = truth[i] = (unsigned char)below(256);
            break;
        case 3:
            metafork_touch(data, first, length, METAFORK_UPDATES);
            check(first, first + length, "an update", step);
            for (int i = first; i < first + length; i++)
                if (below(2)) data[i] = truth[i] = (unsigned char)below(256);
            break;
        case 4:
        case 5:
            if (below(rarely) == 0) launch(step);
            break;
        case 6:
            if (below(10 * rarely) == 0) {
                const char frame = metafork_enter();
                metafork_leave(&frame);
                if (!kept) check(0, SIZE, "a return", step);
                if (!kept && metafork_residents_of_thread()->count != 0) return 2;
            } else if (below(10 * rarely) == 0) {
                const metafork_local local = {data + first, (unsigned long long)length};
                metafork_forget(&local);
                for (int i = first; i < first + length; i++) data[i] = truth[i] = 7;
            }
            break;
        case 7:
            if (below(20) == 0) {
                metafork_keep(data + 100);
                kept = true;
            } else if (below(20 * rarely) == 0) {
                metafork_touch_all(below(2) ? METAFORK_READS : METAFORK_UPDATES);
                check(0, SIZE, "everything", step);
            } else if (below(20 * rarely) == 0) {
                const char outer = metafork_enter(); /* a function that another one calls */
                const bool told = below(2) != 0;
                if (told) metafork_calls();
                const char inner = metafork_enter();
                launch(step);
                metafork_leave(&inner);
                if (told) metafork_touch(data, first, length, METAFORK_WRITES);
                if (!told) check(0, SIZE, "an inner return", step);
                for (int i = first; i < first + length; i++) data[i] = truth[i] = 9;
                metafork_leave(&outer);
            } else if (below(20 * rarely) == 0) {
                metafork_settle();
                check(0, SIZE, "an end of what is known", step);
            }
            break;
        case 8: {
            const Steps one = some_steps();
            const int how = 1 + below(3);
            metafork_touch_steps(data, one.first, one.width, how, one.rank, one.steps);
            if (how != METAFORK_WRITES) one.each([&](int at) { check(at, at + 1, "a step", step); });
            if (how != METAFORK_READS)
                one.each([&](int at) {
                    if (how == METAFORK_WRITES || below(2)) data[at] = truth[at] = (unsigned char)below(256);
                });
            break;
        }
        case 9:
            if (below(20) == 0) {
                metafork_drop(data + 100);
                kept = false;
            }
            break;
        }
    }
    metafork_drop(data + 100);
    const char frame = metafork_enter();
    metafork_leave(&frame);
    check(0, SIZE, "the end", -1);
    return metafork_residents_of_thread()->count + allocated;
}
