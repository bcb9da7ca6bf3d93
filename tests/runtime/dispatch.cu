// metafork_dispatch with leaves whose registers and faults the command line gives: what a GPU's compiler and driver would say.
#include "metafork/dispatch.h"

static const metafork_term number[] = {{1, 1, {0}}}, limit[] = {{1, 1, {1}}}, two[] = {{2, 1, {0}}};
// Leaf 1 takes x registers by estimate, leaf 2 twice as many, leaf 3 again x.
static const metafork_limit limits1[] = {{"r", {{number, 1}, METAFORK_AT_MOST, {limit, 1}, "x <= R"}, METAFORK_REGISTERS_PER_THREAD}};
static const metafork_limit limits2[] = {{"r", {{two, 1}, METAFORK_AT_MOST, {limit, 1}, "2*x <= R"}, METAFORK_REGISTERS_PER_THREAD}};
static const metafork_limit limits3[] = {{"r", {{number, 1}, METAFORK_AT_MOST, {limit, 1}, "x <= RB"}, METAFORK_REGISTERS_PER_BLOCK}};
static const metafork_leaf leaves[] = {{limits1, 1, nullptr, 0}, {limits2, 1, nullptr, 0}, {limits3, 1, nullptr, 0}};
static metafork_use uses[] = {{"a", true, false, false, false, false}, {"b", false, false, false, false, false}};
static int said;
static const metafork_schedule schedule = {"s", leaves, 3, nullptr, 0, uses, 2, nullptr, 0, &said, nullptr, 0, -1};

// arguments: chosen leaf, R, then for each leaf its registers (-1: not measured) and the error of checking it; error of the launch;
// where b begins in a, which of the two is written (1: a, 2: b, 3: both); whether code before the next schedule moves an array
static long long arguments[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 1, 0};

static int chosen(const void *, const metafork_machine *, int64_t *values)
{
    values[0] = 32;
    values[1] = arguments[1];
    return (int)arguments[0];
}

static int attempted(const void *, int leaf, bool go, metafork_shape *shape, void *, void *const *device)
{
    for (int axis = 0; axis < 3; axis++) shape->grid[axis] = shape->block[axis] = 1;
    shape->block[0] = 33;
    shape->registers = arguments[2 * leaf];
    if (!go) return (int)arguments[2 * leaf + 1];
    printf("leaf %d\n", leaf);
    static_cast<int *>(device[0])[1] = leaf * 10;
    return (int)arguments[8];
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc && i < 13; i++) arguments[i - 1] = atoll(argv[i]);
    int data[8] = {1, 2, 3, 4};
    void *const arrays[] = {data, data + arguments[9]};
    const int64_t bytes[] = {4 * sizeof *data, 4 * sizeof *data};
    for (int i = 0; i < 2; i++) uses[i].written = (arguments[10] >> i & 1) != 0;
    int64_t values[2] = {};
    const int ran = metafork_dispatch(&schedule, arrays, bytes, false, false, false, values, nullptr, chosen, attempted);
    if (arguments[11] != 0 && !metafork_unchanged(0, "s")) printf("moved: %d %d\n", data[0], data[1]);
    metafork_enter();
    metafork_leave(nullptr);
    printf("%d: %d %d\n", ran, data[0], data[1]);
    return metafork_residents_of_thread()->count;
}
