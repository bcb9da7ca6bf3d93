/* Streams of a device that is not there, for tests: what is begun takes effect as late as is legal, or in a random legal order.
 *
 *   STANDIN_ORDER=late      nothing runs before somebody waits for it (the default)
 *   STANDIN_ORDER=random:7  at each call some of what may run does, by a generator with that seed
 *   STANDIN_ORDER=early     everything runs at once
 *   STANDIN_BREAK=7         the seventh operation fails, and from then on every wait
 *   STANDIN_DEAF=streams    no stream waits for another; =host: the host waits for no event, as if the program did not ask
 *
 * The host must not free memory that something under way uses, nor copy to or from memory of its own that is not pinned: such
 * violations end the program.  What it reads or writes too early shows in its results.
 */
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace late {

using Range = std::pair<const char *, size_t>;

struct Stream;
struct Operation {
    std::function<void()> run; // none: it only waits
    std::vector<Range> uses;
    Stream *other; // whose operation comes first
    int64_t number;
};
struct Stream {
    int device = 0; // the stand-in's number
    std::deque<Operation> pending = {};
    int64_t begun = 0, done = 0;
};
struct Event {
    int device = 0;
    Stream *stream = nullptr;
    int64_t number = 0;
};

struct Device {
    std::recursive_mutex lock;
    std::vector<Stream *> streams;
    std::map<const char *, size_t> pinned;
    uint64_t state = 0;
    int64_t operations = 0, breaking = 0;
    bool early = false, random = false, broken = false, deaf_streams = false, deaf_host = false;
    Device() {
        const char *const order = getenv("STANDIN_ORDER"), *const breaks = getenv("STANDIN_BREAK"), *const deaf = getenv("STANDIN_DEAF");
        deaf_streams = deaf != nullptr && strcmp(deaf, "streams") == 0;
        deaf_host = deaf != nullptr && strcmp(deaf, "host") == 0;
        early = order != nullptr && strcmp(order, "early") == 0;
        random = order != nullptr && strncmp(order, "random:", 7) == 0;
        if (random) state = strtoull(order + 7, nullptr, 10) * 2 + 1;
        if (breaks != nullptr) breaking = atoll(breaks);
    }
    uint64_t below(uint64_t n) {
        state = state * 6364136223846793005ull + 1442695040888963407ull;
        return (state >> 33) % n;
    }
};
inline Device &device() {
    static Device one;
    return one;
}

[[noreturn]] inline void violation(const char *what) {
    fprintf(stderr, "violation: %s\n", what);
    fflush(nullptr);
    _Exit(3);
}

inline void run_until(Stream *stream, int64_t number) {
    while (stream->done < number && !stream->pending.empty()) {
        const Operation one = std::move(stream->pending.front());
        stream->pending.pop_front();
        stream->done++;
        if (one.other != nullptr) run_until(one.other, one.number);
        if (!one.run) continue;
        if (++device().operations == device().breaking) device().broken = true;
        if (!device().broken) one.run();
    }
}

// A call of the host: some of what may run does.
inline void pass() {
    Device &here = device();
    for (Stream *const one : here.streams)
        if (here.early) run_until(one, one->begun);
    if (!here.random || here.streams.empty()) return;
    for (uint64_t count = here.below(4); count > 0; count--) {
        Stream *const one = here.streams[here.below(here.streams.size())];
        if (one->done < one->begun) run_until(one, one->done + 1);
    }
}

using Guard = std::lock_guard<std::recursive_mutex>;

inline Stream *make(int number = 0) {
    const Guard guard(device().lock);
    return device().streams.emplace_back(new Stream{number});
}

inline void known(const Stream *stream) {
    for (const Stream *const one : device().streams)
        if (one == stream) return;
    violation("a stream that is not there any more is used");
}

inline void end(Stream *stream) {
    const Guard guard(device().lock);
    known(stream);
    for (const Operation &one : stream->pending)
        if (one.run) violation("a stream ends while something is under way");
    std::vector<Stream *> &all = device().streams;
    for (size_t i = 0; i < all.size(); i++)
        if (all[i] == stream) all.erase(all.begin() + (std::ptrdiff_t)i);
    delete stream;
}

inline void begin(Stream *stream, std::function<void()> run, std::vector<Range> uses = {}) {
    const Guard guard(device().lock);
    known(stream);
    stream->pending.push_back({std::move(run), std::move(uses), nullptr, 0});
    stream->begun++;
    pass();
}

inline void follow(Stream *stream, const Event *event) {
    const Guard guard(device().lock);
    if (event->stream == nullptr) violation("an event that nobody recorded is followed");
    if (device().deaf_streams) return;
    stream->pending.push_back({nullptr, {}, event->stream, event->number});
    stream->begun++;
    pass();
}

inline void record(Event *event, Stream *stream) {
    const Guard guard(device().lock);
    static Stream over; /* what is begun on the stream of no number is over at once */
    if (stream == nullptr) stream = &over; else known(stream);
    event->stream = stream;
    event->number = stream->begun;
    pass();
}

// Returns whether all is well.
inline bool finish(Stream *stream) {
    const Guard guard(device().lock);
    run_until(stream, stream->begun);
    return !device().broken;
}
inline bool await(const Event *event) {
    const Guard guard(device().lock);
    if (event->stream == nullptr) violation("an event that nobody recorded is waited for");
    if (!device().deaf_host) run_until(event->stream, event->number);
    return !device().broken;
}

inline void *pin(size_t bytes) {
    const Guard guard(device().lock);
    char *const memory = static_cast<char *>(malloc(bytes));
    memset(memory, 0xa5, bytes);
    device().pinned[memory] = bytes;
    return memory;
}

// Memory is about to be freed.
inline void ends(const void *memory, size_t bytes) {
    const Guard guard(device().lock);
    const char *const start = static_cast<const char *>(memory);
    for (const Stream *const stream : device().streams)
        for (const Operation &one : stream->pending)
            for (const auto &[first, length] : one.uses)
                if (start < first + length && first < start + bytes) violation("memory is freed while something under way uses it");
}

inline void unpin(void *memory) {
    const Guard guard(device().lock);
    const auto found = device().pinned.find(static_cast<char *>(memory));
    if (found == device().pinned.end()) violation("memory that is not pinned is freed as such");
    ends(memory, found->second);
    device().pinned.erase(found);
    free(memory);
}

// All that belongs to the device is gone; streams of before are not to be used any more.
inline void reset() {
    const Guard guard(device().lock);
    for (const auto &[memory, bytes] : device().pinned) free(const_cast<char *>(memory));
    device().pinned.clear();
    device().streams.clear();
}

// A copy of rows, on whose host's side is pinned memory.
inline void copy(Stream *stream, void *to, size_t to_stride, const void *from, size_t from_stride, size_t width, size_t rows, bool to_device,
                 std::function<void(bool)> access = [](bool) {}) {
    const Guard guard(device().lock);
    const Range target = {static_cast<char *>(to), to_stride * (rows - 1) + width};
    const Range source = {static_cast<const char *>(from), from_stride * (rows - 1) + width};
    const Range host = to_device ? source : target;
    bool inside = false;
    for (const auto &[start, bytes] : device().pinned) inside = inside || (host.first >= start && host.first + host.second <= start + bytes);
    if (!inside) violation("a copy that is only begun uses memory that is not pinned");
    begin(
        stream,
        [=] {
            access(true);
            for (size_t row = 0; row < rows; row++)
                memcpy(static_cast<char *>(to) + row * to_stride, static_cast<const char *>(from) + row * from_stride, width);
            access(false);
        },
        {target, source});
}

} // namespace late
