/* What metafork/device.h has for GPUs, with HIP's stand-in: updates of integers of any size, and neighbours moved together.
 * Prints what is wrong.
 */
#define METAFORK_HIP 1
#include "metafork/hip.h"
#include "metafork/device.h"

#define WRONG(...) (printf(__VA_ARGS__), puts(""))

/* Update each of some neighbours; the others keep their values. */
template <class T, class Update, class Value> static void update(const char *type, const char *what, const Update &atomic, const Value &plain) {
    for (int place = 0; place < 8; place++)
        for (int by : {1, 3, 77, -2}) {
            alignas(8) T all[8], expected[8];
            for (int i = 0; i < 8; i++) all[i] = expected[i] = (T)(40 * i - 100);
            expected[place] = plain(expected[place], (T)by);
            atomic(&all[place], (T)by);
            if (memcmp(all, expected, sizeof all) != 0) WRONG("%s %s: place %d by %d", what, type, place, by);
        }
}

#define UPDATE(type, name, value) \
    update<type>(#type, #name, [](type *place, type by) { metafork_atomic_##name(place, by); }, [](type old, type by) { return (type)(value); })
#define UPDATES(type)                                                                      \
    UPDATE(type, add, (unsigned long long)old + (unsigned long long)by);                   \
    UPDATE(type, sub, (unsigned long long)old - (unsigned long long)by);                   \
    UPDATE(type, mul, (unsigned long long)old * (unsigned long long)by);                   \
    UPDATE(type, and, old & by);                                                           \
    UPDATE(type, or, old | by);                                                            \
    UPDATE(type, xor, old ^ by);                                                           \
    UPDATE(type, min, by < old ? by : old);                                                \
    UPDATE(type, max, old < by ? by : old)

template <class T, int lanes> static void together(const char *type) {
    alignas(16) T from[4] = {1, 2, 3, 4}, to[4] = {}, stored[4] = {}, moved[4] = {};
    if constexpr (lanes == 2)
        metafork_load(from, to[0], to[1]), metafork_store(stored, from[0], from[1]);
    else
        metafork_load(from, to[0], to[1], to[2], to[3]), metafork_store(stored, from[0], from[1], from[2], from[3]);
    metafork_move<lanes>(moved, from);
    for (T *const all : {to, stored, moved})
        for (int i = 0; i < 4; i++)
            if (all[i] != (i < lanes ? from[i] : 0)) WRONG("%d %s together: %d", lanes, type, i);
}

#define TOGETHER(type, lanes) together<type, lanes>(#type)

int main() {
    UPDATES(signed char);
    UPDATES(unsigned char);
    UPDATES(short);
    UPDATES(unsigned short);
    UPDATES(int);
    UPDATES(unsigned int);
    UPDATES(long long);
    UPDATES(unsigned long long);
    TOGETHER(float, 2), TOGETHER(float, 4), TOGETHER(int, 2), TOGETHER(int, 4), TOGETHER(unsigned int, 2), TOGETHER(unsigned int, 4);
    TOGETHER(double, 2), TOGETHER(long, 2), TOGETHER(unsigned long, 2), TOGETHER(long long, 2), TOGETHER(unsigned long long, 2);
    puts("end");
}
