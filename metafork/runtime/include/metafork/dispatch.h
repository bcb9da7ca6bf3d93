/* Running a schedule on host arrays: which leaf, and what happens where none applies.  C11 and C++.
 *
 * metafork_dispatch moves arrays, picks the leaf and launches it; where it returns 0, the host's arrays are current and what
 * the schedule writes is the host's to write: the caller runs the serial code.
 */
#ifndef METAFORK_DISPATCH_H
#define METAFORK_DISPATCH_H

#include "metafork/launch.h"

METAFORK_COMPILED_QUICKLY
#include "metafork/exact.h"
METAFORK_COMPILED_AS_GIVEN

/* ---- choosing a leaf ---- */

typedef enum metafork_measure { METAFORK_ESTIMATED, METAFORK_REGISTERS_PER_THREAD, METAFORK_REGISTERS_PER_BLOCK } metafork_measure;

/* value <= limit for one counter of one variant; a measured counter replaces the left side where the compiler's figure is known. */
typedef struct metafork_limit {
    const char *counter;
    metafork_condition condition;
    metafork_measure measure;
} metafork_limit;

/* A kernel of a leaf: it runs where the conditions hold that it has beside those of its leaf, and its counters are within the
 * machine's limits.  `compiled` says that it can be compiled at run time for the arguments (metafork/jit.h). */
typedef struct metafork_variant {
    const metafork_condition *conditions;
    int condition_count;
    const metafork_limit *limits;
    int limit_count;
    bool compiled;
} metafork_variant;

/* The variants of a leaf in order of preference; the last one is its own, and has no conditions. */
typedef struct metafork_leaf {
    const metafork_variant *variants;
    int variant_count;
} metafork_leaf;

typedef enum metafork_derivation { METAFORK_FLOOR, METAFORK_CEILING, METAFORK_LEAST, METAFORK_GREATEST } metafork_derivation;

/* A value that is computed from others: a quotient of two polynomials, or the least or greatest of some, each divided by `divisor`. */
typedef struct metafork_derived {
    int place;
    metafork_derivation kind;
    const metafork_polynomial *operands;
    int count;
    int64_t divisor;
} metafork_derived;

/* What chooses a leaf.  `later` are what regions are made of; where one cannot be computed, the value at `doubt` is 1. */
typedef struct metafork_tree {
    const metafork_derived *derived;
    int derived_count;
    const metafork_derived *later;
    int later_count;
    const metafork_condition *start;
    int start_count;
    const metafork_node *nodes;
    const metafork_condition *conditions;
    int root;
    int doubt;
} metafork_tree;

/* Of an array: what a launch does to it (metafork_effect says what the words mean). */
typedef struct metafork_use {
    const char *name;
    bool written, exact, overwritten, later, compared;
} metafork_use;

/* Indices that one loop adds: `step` times each number that is at least all of some values and less than all of others. */
typedef struct metafork_span {
    metafork_polynomial step;
    const metafork_polynomial *least;
    int least_count;
    const metafork_polynomial *behind;
    int behind_count;
} metafork_span;

/* Elements that a schedule surely overwrites: an index and what spans add to it; `bytes` are those of an element. */
typedef struct metafork_region {
    int array;
    int64_t bytes;
    metafork_polynomial first;
    const metafork_span *spans;
    int span_count;
} metafork_region;

typedef struct metafork_schedule {
    const char *name;
    const metafork_leaf *leaves;
    int leaf_count;
    const metafork_condition *start;
    int start_count;
    const metafork_use *arrays;
    int array_count;
    const char *const *targets; /* names of performance targets that METAFORK_MACHINE may give */
    int target_count;
    int *said; /* one message a reason */
    const metafork_region *regions;
    int region_count;
    int doubt; /* where the value at this place is not 0, they are not known; -1: there is none */
} metafork_schedule;

/* The target of that name, or its default. */
static inline void metafork_find_target(const metafork_machine *machine, const char *name, int64_t *numerator, int64_t *denominator) {
    for (int64_t i = 0; i < machine->target_count && i < METAFORK_MAX_TARGETS; i++)
        if (strcmp(machine->targets[i].name, name) == 0) {
            *numerator = machine->targets[i].numerator;
            *denominator = machine->targets[i].denominator;
        }
}

/* A limit from a compute capability on. */
typedef struct metafork_preset {
    int64_t compute_capability;
    int64_t limit;
} metafork_preset;

/* The limit of that name that a counter brings along: what METAFORK_MACHINE gives, else that of the last preset (they rise)
 * that is not newer than the machine, else `otherwise`. */
static inline int64_t metafork_own_limit(const metafork_machine *machine, const char *name, const metafork_preset *presets, int count,
                                         int64_t otherwise) {
    int64_t limit = otherwise;
    int64_t numerator = -1, denominator = 1;
    metafork_find_target(machine, name, &numerator, &denominator);
    if (numerator >= 0 && denominator >= 1) return numerator / denominator;
    for (int i = 0; i < count && presets[i].compute_capability <= machine->compute_capability; i++) limit = presets[i].limit;
    return limit;
}

/* Select a leaf; `inputs` are the parameters and values of one call. */
typedef int metafork_choice(const void *inputs, const metafork_machine *machine, int64_t *values);

/* ---- what a launch needs ---- */

/* An integer that a kernel takes: its place among the numbers, and the bits of its type; less than 0 for a signed type, 1 for a truth
 * value. */
typedef struct metafork_argument {
    unsigned char place;
    signed char bits;
} metafork_argument;

/* The value of a parameter that a kernel was compiled for. */
typedef struct metafork_fixed {
    unsigned char place;
    int64_t value;
} metafork_fixed;

/* Return a number that is computed from the integers of a call and from numbers before it; `failed` is set if 64 bits do not hold it. */
typedef int64_t metafork_computation(int number, const void *inputs, const int64_t *numbers, int *failed);

/* A kernel: polynomials in the integers of a call, with which its inputs begin, and in numbers that are computed from them. */
typedef struct metafork_kernel {
    metafork_computation *compute;
    int integer_count;
    const metafork_polynomial *extents; /* of the grid and of a block, bytes of shared memory, the widest block: 8 */
    const unsigned char *first;         /* the numbers to be computed for extents and arguments, in order */
    int first_count;
    const metafork_argument *arguments;
    int argument_count;
    const metafork_polynomial *spans; /* where one is beyond 31 bits, or unknown, offsets need 64 */
    int span_count;
    const unsigned char *more; /* the numbers that spans need beside those */
    int more_count;
    const metafork_fixed *fixed;
    int fixed_count;
    uint64_t aligned; /* the arrays, as bits, that must begin at multiples of 16 bytes, or else the large kernel runs */
} metafork_kernel;

/* ---- what generated files call ---- */

/* Compute the values that a tree derives, and return the leaf that it gives, 0: none, -1: outside of Start, -2: a value does not fit,
 * or one before them had `failed`. */
METAFORK_RUNTIME int metafork_leaf_of(const metafork_tree *tree, int64_t *values, int failed);

/* The number of the first variant of a leaf that its estimates admit, 0 for none. */
METAFORK_RUNTIME int metafork_estimated_variant(const metafork_leaf *leaf, const int64_t *values);

enum { METAFORK_MOST_REMEMBERED = 256 };

/* What a thread launched last of a schedule: `shape`, of a leaf on a device, under METAFORK_MACHINE (its text), with arrays that
 * begin so many bytes behind a multiple of METAFORK_PLACE. */
typedef struct metafork_recent {
    bool known;
    int leaf, device;
    char machine[METAFORK_MOST_REMEMBERED];
    unsigned char places[METAFORK_MOST_REMEMBERED];
    metafork_shape shape;
} metafork_recent;

enum { METAFORK_PLACE = 64 };

/* Check a leaf, and launch the first of its variants that fits.  `choose` fills `values`, on which conditions are evaluated; NULL
 * where leaves have one kernel each.  `recent` is the calling thread's, and with it the `count` integers with which `inputs` begins
 * as they were then: where all is as it was, nothing is chosen or checked again. */
METAFORK_RUNTIME int metafork_launch_leaf(const metafork_schedule *schedule, metafork_choice *choose, int64_t *values,
    metafork_attempt *attempt, const void *inputs, int leaf, void *stream, void *const *arrays, metafork_recent *recent,
    int64_t *integers, int count);

/* Check a shape against the device and the compiled kernel, cut the grid to the hardware's limits (large kernels walk larger
 * ones with a stride), and note the registers.  `functions` are the kernels' symbols or handles, the large one last;
 * NULL where they have no attributes. */
METAFORK_RUNTIME int metafork_check_shape(metafork_shape *shape, const void *const *functions);

/* Say what is about to be launched; what launches it calls metafork_range_ends behind that. */
METAFORK_RUNTIME void metafork_trace_launch(const char *schedule, int leaf, const metafork_shape *shape, const char *const *names,
                                            const int64_t *parameters, int count);

/* Compute the integers that a kernel takes, and the shape of its launch unless that is ready.  `arrays` may be NULL. */
METAFORK_RUNTIME int metafork_prepare(const metafork_kernel *kernel, const void *inputs, metafork_shape *shape, void *const *arrays,
    int64_t *arguments);

/* What functions take that check one kernel or launch it, and hand on to each other. */
#define METAFORK_CALL                                                                                                  \
    const void *metafork_inputs, bool metafork_go, metafork_shape *metafork_s, void *metafork_stream, void *const *metafork_d
#define METAFORK_GIVEN metafork_inputs, metafork_go, metafork_s, metafork_stream, metafork_d

/* In such a function: fill metafork_a and *metafork_s for the kernel of a table, or return; say what is about to be launched. */
#define METAFORK_PREPARE(kernel)                                                                                       \
    const int metafork_unfit = metafork_prepare(&kernel, metafork_inputs, metafork_s, metafork_d, metafork_a);         \
    (void)metafork_stream;                                                                                             \
    if (metafork_unfit != METAFORK_OK) return metafork_unfit
#define METAFORK_TRACE(schedule, leaf, count)                                                                          \
    metafork_trace_launch(#schedule, leaf, metafork_s, schedule##_names, (const int64_t *)metafork_inputs, count)

/* Make the pointers that a launch takes, to integers and then to addresses of arrays. */
static inline void metafork_point(void **pointers, int64_t *integers, int integer_count, void *const *arrays, int array_count) {
    for (int i = 0; i < integer_count; i++) pointers[i] = &integers[i];
    for (int i = 0; i < array_count; i++) pointers[integer_count + i] = (void *)&arrays[i];
}

/* In such a function: declare what is known of an extent, in a scope with a metafork_failed of its own: whether it is less than 1.
 * `signed_grid`: no serial code runs then; `shape`: it is one of a block. */
#define METAFORK_EXTENT(extent, signed_grid, shape)                                                                    \
    const int64_t metafork_extent = extent;                                                                            \
    const bool metafork_none = !metafork_failed && metafork_extent < 1;                                                \
    metafork_empty = metafork_empty || metafork_none;                                                                  \
    if (signed_grid) metafork_nothing = metafork_nothing || metafork_none;                                             \
    if (shape) metafork_blocks = metafork_blocks && !metafork_failed && !metafork_none

enum { METAFORK_ENDLESS = -1 }; /* the size of an array of which the program does not know it */

/* Run one schedule.  `bytes` are the sizes of the arrays, or METAFORK_ENDLESS; of these the host may have found out what is touched,
 * the first byte and the number of bytes in turn (`reach`, else NULL); `failed` says that a size or a parameter does not fit
 * 64 bits, `empty` that a trip count is less than 1, `nothing` that it is one of the grid, all in signed numbers: then no serial
 * code runs.  `choose` fills the vector that conditions are evaluated on, which is zero before, and returns the selected leaf, 0 for
 * none, -1 outside of Start, -2 where a value does not fit.  Returns 1, or 0 where the serial code must run. */
METAFORK_RUNTIME int metafork_dispatch(const metafork_schedule *schedule, void *const *arrays, const int64_t *bytes, const long long *reach, bool failed,
    bool empty, bool nothing, int64_t *values, const void *inputs, metafork_choice *choose, metafork_attempt *attempt);

#if !defined(METAFORK_RUNTIME_APART)
METAFORK_COMPILED_QUICKLY
#include "metafork/dispatching.h"
METAFORK_COMPILED_AS_GIVEN
#endif

#endif
