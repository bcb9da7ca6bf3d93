/* The definitions of what metafork/dispatch.h declares.  C11 and C++. */
#ifndef METAFORK_DISPATCHING_H
#define METAFORK_DISPATCHING_H

#include "metafork/dispatch.h"
#include "metafork/row_tables.h"
#if defined(METAFORK_HAS_STREAMS)
#include "metafork/borrowed.h"
#endif

#include <stdarg.h>

METAFORK_RUNTIME int metafork_check_shape(metafork_shape *shape, const void *const *functions) {
    metafork_machine hardware, machine;
    if (shape->ready) return METAFORK_OK;
    int device, error = metafork_current_device(&device);
    if (error == METAFORK_OK) error = metafork_hardware_query(device, &hardware);
    if (error == METAFORK_OK) error = metafork_machine_query(device, &machine);
    if (error != METAFORK_OK) return error;
    const int64_t block_limits[3] = {hardware.block_dim_x, hardware.block_dim_y, hardware.block_dim_z};
    const int64_t grid_limits[3] = {hardware.grid_dim_x, hardware.grid_dim_y, hardware.grid_dim_z};
    const int64_t grid_wishes[3] = {machine.grid_dim_x, machine.grid_dim_y, machine.grid_dim_z};
    for (int axis = 0; axis < 3; axis++)
        if (shape->grid[axis] < 1 || shape->block[axis] < 1) return METAFORK_EEMPTY;
    if (shape->shared_bytes < 0) return METAFORK_EINVAL;
    for (int axis = 0; axis < 3; axis++) {
        if (shape->block[axis] > block_limits[axis]) return METAFORK_ERESOURCES;
        const int64_t whole = shape->grid[axis];
        if (shape->grid[axis] > grid_limits[axis]) shape->grid[axis] = grid_limits[axis];
        if (shape->grid[axis] > grid_wishes[axis] && grid_wishes[axis] > 0) shape->grid[axis] = grid_wishes[axis];
        if (shape->grid[axis] != whole) shape->large = true;
    }
    /* No overflow: the limits of the block's dimensions were checked. */
    const int64_t threads = shape->block[0] * shape->block[1] * shape->block[2];
    int64_t most_threads = hardware.threads_per_block;
    int64_t shared_bytes = shape->shared_bytes;
    metafork_attributes attributes = {-1, INT64_MAX, 0};
    error = metafork_kernel_attributes(functions == NULL ? NULL : functions[shape->large], &attributes);
    if (error != METAFORK_OK) return error;
    shape->registers = attributes.registers;
    if (attributes.threads < most_threads) most_threads = attributes.threads;
    shared_bytes += attributes.shared_bytes;
    if (shape->widest > 0 && threads <= most_threads) shape->block[0] = metafork_widened(shape, &machine, most_threads);
    if (threads > most_threads || shared_bytes > hardware.shared_words * 4) return METAFORK_ERESOURCES;
    return METAFORK_OK;
}

METAFORK_RUNTIME void metafork_trace_launch(const char *schedule, int leaf, const metafork_shape *shape, const char *const *names,
                                            const int64_t *parameters, int count) {
    char line[1024];
    size_t used = 0;
    metafork_range_of_launch(schedule, leaf, shape->variant);
    if (!metafork_enabled("METAFORK_TRACE")) return;
    for (int i = 0; i < count && used < sizeof line; i++)
        used += (size_t)snprintf(line + used, sizeof line - used, " %s=%lld", names[i], (long long)parameters[i]);
    line[used < sizeof line ? used : sizeof line - 1] = '\0';
    char registers[32] = "";
    if (shape->registers >= 0) snprintf(registers, sizeof registers, " registers=%lld", (long long)shape->registers);
    char variant[32] = "";
    if (shape->variant > 0) snprintf(variant, sizeof variant, " variant=%d", shape->variant);
    const char *const large = shape->large ? " large" : "";
    fprintf(stderr, "metafork: %s leaf %d%s grid=%lldx%lldx%lld block=%lldx%lldx%lld shared_bytes=%lld%s%s%s%s\n", schedule, leaf,
            used > 0 ? line : "", (long long)shape->grid[0], (long long)shape->grid[1], (long long)shape->grid[2], (long long)shape->block[0],
            (long long)shape->block[1], (long long)shape->block[2], (long long)shape->shared_bytes, registers, large, variant, shape->compiled ? " jit" : "");
}

typedef enum metafork_reason {
    METAFORK_SAY_LEAF = 1,
    METAFORK_SAY_START = 2,
    METAFORK_SAY_OVERLAP = 4,
    METAFORK_SAY_ERROR = 8,
    METAFORK_SAY_SIZE = 16,
    METAFORK_SAY_NULL = 32,
    METAFORK_SAY_CAPTURED = 64,
    METAFORK_SAY_EXTENT = 128
} metafork_reason;

/* Say why the serial code runs, once a reason; abort in strict mode. */
__attribute__((format(printf, 3, 4), unused)) static void metafork_serial(const metafork_schedule *schedule, metafork_reason reason,
                                                                        const char *format, ...) {
    const bool strict = metafork_enabled("METAFORK_STRICT");
    const bool said = (__atomic_fetch_or(schedule->said, (int)reason, __ATOMIC_RELAXED) & (int)reason) != 0;
    if (said && !strict && !metafork_enabled("METAFORK_TRACE")) return;
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "metafork: %s: ", schedule->name);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, strict ? "; METAFORK_STRICT is set\n" : "; the serial code runs\n");
    va_end(arguments);
}

typedef char metafork_digits[48];

/* A value as text, which lies in `digits`. */
__attribute__((unused)) static const char *metafork_number_text(metafork_polynomial polynomial, const int64_t *values, metafork_digits digits) {
    metafork_int128 value;
    if (!metafork_value_small(polynomial, values, &value)) return metafork_sign(polynomial, values) < 0 ? "minus about 2^126 or more" : "about 2^126 or more";
    size_t at = sizeof(metafork_digits) - 1;
    metafork_uint128 size = value < 0 ? -(metafork_uint128)value : (metafork_uint128)value;
    digits[at] = '\0';
    do {
        digits[--at] = (char)('0' + (int)(size % 10));
        size /= 10;
    } while (size != 0);
    if (value < 0) digits[--at] = '-';
    return digits + at;
}

/* One line of an explanation, at once, as other threads may write too: `  leaf 1: 2*s*B + 2 <= Z is violated: 8194 <= 4096`. */
__attribute__((unused)) static void metafork_print_violation(const char *where, const metafork_condition *condition, int64_t measured,
                                                            const int64_t *values) {
    static const char *const relations[] = {"<=", "<", "=="};
    metafork_digits left, right, compiled;
    if (measured >= 0) snprintf(compiled, sizeof compiled, "%lld (as compiled)", (long long)measured);
    fprintf(stderr, "metafork:   %s: %s is violated: %s %s %s\n", where, condition->text,
            measured >= 0 ? compiled : metafork_number_text(condition->left, values, left), relations[condition->relation],
            metafork_number_text(condition->right, values, right));
}

/* What the compiler used in place of a counter's estimate, or -1.  A block launches where its registers would do for as many
 * warps in each partition of the multiprocessor. */
static inline int64_t metafork_measured(const metafork_limit *limit, const metafork_shape *shape, int64_t warp_size) {
    if (warp_size < 1) warp_size = 32; /* a machine of the user's own that leaves it out */
    if (shape->registers < 0 || limit->measure == METAFORK_ESTIMATED) return -1;
    if (limit->measure == METAFORK_REGISTERS_PER_THREAD) return shape->registers;
    const int64_t threads = shape->block[0] * shape->block[1] * shape->block[2];
    const int64_t whole = METAFORK_PARTITIONS * warp_size;
    return (threads + whole - 1) / whole * whole * metafork_allocated_registers(shape->registers);
}

/* Whether the conditions of a variant hold; explains the first that does not as one of `where` (NULL: says nothing). */
static inline bool metafork_admitted(const metafork_variant *variant, const int64_t *values, const char *where) {
    for (int i = 0; i < variant->condition_count; i++)
        if (!metafork_holds(&variant->conditions[i], values)) {
            /* Other values than those that it is compiled for are no reason worth a line. */
            if (variant->conditions[i].relation != METAFORK_EQUAL && where != NULL)
                metafork_print_violation(where, &variant->conditions[i], -1, values);
            return false;
        }
    return true;
}

/* Whether a variant is within the limits of the machine; explains those that do not hold in the same way. */
__attribute__((unused)) static bool metafork_within_limits(const metafork_variant *variant, const metafork_shape *shape, const int64_t *values,
                                                          int64_t warp_size, const char *where) {
    bool within = true;
    for (int i = 0; i < variant->limit_count; i++) {
        const metafork_limit *limit = &variant->limits[i];
        const int64_t measured = metafork_measured(limit, shape, warp_size);
        bool holds;
        if (measured >= 0) {
            int failed = 0;
            const int64_t most = metafork_value(limit->condition.right, 1, values, &failed);
            holds = failed ? metafork_sign(limit->condition.right, values) > 0 : measured <= most;
        } else {
            holds = metafork_holds(&limit->condition, values) != 0;
        }
        if (!holds && where != NULL) metafork_print_violation(where, &limit->condition, measured, values);
        within = within && holds;
    }
    return within;
}

METAFORK_RUNTIME int metafork_estimated_variant(const metafork_leaf *leaf, const int64_t *values) {
    metafork_shape unknown = METAFORK_NONE;
    unknown.registers = -1;
    for (int number = 1; number <= leaf->variant_count; number++) {
        const metafork_variant *variant = &leaf->variants[number - 1];
        if (metafork_admitted(variant, values, NULL) && metafork_within_limits(variant, &unknown, values, 0, NULL)) return number;
    }
    return 0;
}

static inline void metafork_check_targets(const metafork_schedule *schedule, const metafork_machine *machine) {
    static int said;
    for (int64_t i = 0; i < machine->target_count; i++) {
        bool known = false;
        for (int j = 0; j < schedule->target_count; j++) known = known || strcmp(machine->targets[i].name, schedule->targets[j]) == 0;
        if (!known && !__atomic_exchange_n(&said, 1, __ATOMIC_RELAXED))
            fprintf(stderr, "metafork: METAFORK_MACHINE: %s is neither a machine parameter nor a target of %s\n", machine->targets[i].name,
                    schedule->name);
    }
}

/* ---- running a schedule on host arrays ---- */

/* Leave the schedule's arrays to the serial code, which may write those that the schedule writes; returns 0. */
static inline int metafork_to_serial(const metafork_schedule *schedule, void *const *hosts, const int64_t *bytes) {
    for (int i = 0; i < schedule->array_count; i++)
        if (bytes[i] == METAFORK_ENDLESS)
            metafork_touch_all(METAFORK_UPDATES);
        else
            metafork_touch(hosts[i], 0, bytes[i], schedule->arrays[i].written ? METAFORK_UPDATES : METAFORK_READS);
    return 0;
}

/* The same because something is at fault, which strict mode does not let pass. */
__attribute__((unused)) static int metafork_back_to_host(const metafork_schedule *schedule, void *const *hosts, const int64_t *bytes) {
    if (metafork_enabled("METAFORK_STRICT")) abort();
    int device;
    const bool asked = metafork_own_device() && metafork_current_device(&device) == METAFORK_OK;
    for (int i = 0; i < schedule->array_count && asked; i++) {
        metafork_place place = METAFORK_NONE;
        const int error = hosts[i] == NULL || bytes[i] == 0 ? METAFORK_OK : metafork_place_of(device, hosts[i], &place);
        if (error != METAFORK_EELSEWHERE && !place.of_device) continue;
        fprintf(stderr, "metafork: %s: the serial code cannot read %s, which is in the memory of the device\n", schedule->name, schedule->arrays[i].name);
        abort();
    }
    return metafork_to_serial(schedule, hosts, bytes);
}

/* Find the first of a leaf's variants that runs on this machine, by what its compiler used, and check it: `shape` is its.  One that
 * can be compiled for the arguments is, before the kernel for any.  Whether the last one is within limits is not asked where it
 * `must_run`.  0, or what the check of the last one said; METAFORK_ERESOURCES where it is not within limits. */
__attribute__((unused)) static int metafork_take_variant(const metafork_leaf *leaf, const int64_t *values, int64_t warp_size, metafork_attempt *attempt,
                                                        const void *inputs, int number, void *stream, bool must_run, metafork_shape *shape) {
    const bool traced = metafork_enabled("METAFORK_TRACE");
    int error = METAFORK_EINVAL;
    for (int place = 0; place < leaf->variant_count; place++) {
        const metafork_variant *variant = &leaf->variants[place];
        const bool last = place == leaf->variant_count - 1;
        char name[64];
        snprintf(name, sizeof name, "leaf %d, variant %d", number, place + 1);
        const char *const where = traced ? name : NULL;
        if (!metafork_admitted(variant, values, where)) continue;
        for (int compiled = variant->compiled; compiled >= 0; compiled--) {
            const metafork_shape none = METAFORK_NONE;
            *shape = none;
            shape->variant = place + 1;
            shape->compiled = compiled != 0;
            error = attempt(inputs, number, false, shape, stream, NULL);
            if (error != METAFORK_OK) continue;
            if ((last && must_run && compiled == 0) || metafork_within_limits(variant, shape, values, warp_size, where)) return METAFORK_OK;
            error = METAFORK_ERESOURCES;
        }
    }
    return error;
}

/* Whether the calling thread's last launch of a schedule was the same. */
static inline bool metafork_is_recent(const metafork_recent *recent, int leaf, int device, const char *machine, void *const *arrays, int array_count) {
    if (!recent->known || recent->leaf != leaf || recent->device != device || strcmp(recent->machine, machine) != 0) return false;
    for (int i = 0; i < array_count; i++)
        if (recent->places[i] != (uintptr_t)arrays[i] % METAFORK_PLACE) return false;
    return true;
}

/* Remember a launch, unless there is too much to remember. */
static inline void metafork_remember(metafork_recent *recent, int leaf, int device, const char *machine, void *const *arrays, int array_count,
                                     const metafork_shape *shape) {
    if (strlen(machine) >= METAFORK_MOST_REMEMBERED || array_count > METAFORK_MOST_REMEMBERED) return;
    recent->leaf = leaf;
    recent->device = device;
    strcpy(recent->machine, machine);
    for (int i = 0; i < array_count; i++) recent->places[i] = (unsigned char)((uintptr_t)arrays[i] % METAFORK_PLACE);
    recent->shape = *shape;
    recent->shape.ready = true;
    recent->known = true;
}

enum { METAFORK_MOST_NUMBERS = 256, METAFORK_VECTOR_BYTES = 16 };

static inline bool metafork_fits(int64_t value, int bits) {
    if (bits < 0) return bits <= -64 || (value >= -(INT64_C(1) << (-bits - 1)) && value < INT64_C(1) << (-bits - 1));
    return bits == 1 || (value >= 0 && (bits >= 63 || value < INT64_C(1) << bits));
}

/* Whether offsets need 64 bits, or an array begins where no vectors may. */
static inline bool metafork_needs_large(const metafork_kernel *kernel, const void *inputs, void *const *arrays, int64_t *numbers) {
    int failed = 0;
    for (int i = 0; i < kernel->more_count; i++) numbers[kernel->more[i]] = kernel->compute(kernel->more[i], inputs, numbers, &failed);
    for (int i = 0; i < kernel->span_count && !failed; i++)
        if (metafork_value(kernel->spans[i], 1, numbers, &failed) > INT32_MAX) return true;
    uintptr_t places = 0;
    for (int i = 0; arrays != NULL && i < 64; i++)
        if ((kernel->aligned >> i & 1) != 0) places |= (uintptr_t)arrays[i];
    return failed || places % METAFORK_VECTOR_BYTES != 0;
}

METAFORK_RUNTIME int metafork_prepare(const metafork_kernel *kernel, const void *inputs, metafork_shape *shape, void *const *arrays,
                                      int64_t *arguments) {
    int64_t numbers[METAFORK_MOST_NUMBERS];
    int failed = 0;
    memcpy(numbers, inputs, (size_t)kernel->integer_count * sizeof *numbers);
    for (int i = 0; i < kernel->fixed_count; i++)
        if (numbers[kernel->fixed[i].place] != kernel->fixed[i].value) return METAFORK_EINVAL;
    for (int i = 0; i < kernel->first_count; i++) numbers[kernel->first[i]] = kernel->compute(kernel->first[i], inputs, numbers, &failed);
    for (int i = 0; i < kernel->argument_count; i++) {
        const int bits = kernel->arguments[i].bits;
        arguments[i] = numbers[kernel->arguments[i].place];
        if (bits == 1) arguments[i] = arguments[i] != 0;
        failed |= !metafork_fits(arguments[i], bits);
    }
    if (!shape->ready) {
        int64_t extents[8];
        for (int i = 0; i < 8; i++) extents[i] = metafork_value(kernel->extents[i], 1, numbers, &failed);
        memcpy(shape->grid, extents, sizeof shape->grid);
        memcpy(shape->block, extents + 3, sizeof shape->block);
        shape->shared_bytes = extents[6];
        shape->widest = extents[7];
        shape->large = metafork_needs_large(kernel, inputs, arrays, numbers);
    }
    return failed ? METAFORK_EOVERFLOW : METAFORK_OK;
}

static inline void metafork_derive(const metafork_derived *derived, int count, int64_t *values, int *failed) {
    for (int i = 0; i < count; i++) {
        const metafork_derived *const one = &derived[i];
        const metafork_polynomial *const operands = one->operands;
        int64_t *const value = &values[one->place];
        switch (one->kind) {
        case METAFORK_FLOOR: *value = metafork_floor(operands[0], operands[1], values, failed); break;
        case METAFORK_CEILING: *value = metafork_ceiling(operands[0], operands[1], values, failed); break;
        case METAFORK_LEAST: *value = metafork_extremum(-1, operands, one->count, one->divisor, values, failed); break;
        default: *value = metafork_extremum(1, operands, one->count, one->divisor, values, failed); break;
        }
    }
}

METAFORK_RUNTIME int metafork_leaf_of(const metafork_tree *tree, int64_t *values, int failed) {
    int doubt = 0;
    metafork_derive(tree->derived, tree->derived_count, values, &failed);
    for (int i = 0; i < tree->start_count; i++)
        if (!metafork_holds(&tree->start[i], values)) return -1;
    if (failed) return -2;
    metafork_derive(tree->later, tree->later_count, values, &doubt);
    if (tree->doubt >= 0) values[tree->doubt] = doubt;
    return metafork_walk(tree->nodes, tree->conditions, tree->root, values);
}

METAFORK_RUNTIME int metafork_launch_leaf(const metafork_schedule *schedule, metafork_choice *choose, int64_t *values,
                                          metafork_attempt *attempt, const void *inputs, int leaf, void *stream, void *const *arrays,
                                          metafork_recent *recent, int64_t *integers, int count) {
    metafork_shape shape = METAFORK_NONE;
    int device, error = leaf < 1 || leaf > schedule->leaf_count ? METAFORK_EINVAL : metafork_current_device(&device);
    if (error != METAFORK_OK) return error;
#if defined(METAFORK_REMEMBERS)
    const char *const given = metafork_setting("METAFORK_MACHINE"), *const text = given == NULL ? "" : given;
    const size_t bytes = (size_t)count * sizeof *integers;
    if (memcmp(integers, inputs, bytes) == 0 && metafork_is_recent(recent, leaf, device, text, arrays, schedule->array_count)) {
        shape = recent->shape;
        if (attempt(inputs, leaf, true, &shape, stream, arrays) == METAFORK_OK) return METAFORK_OK;
        /* The device may have been reset: all from the beginning. */
        const metafork_shape none = METAFORK_NONE;
        shape = none;
    }
    recent->known = false;
#endif
    if (choose != NULL) {
        metafork_machine machine;
        error = metafork_machine_query(device, &machine);
        if (error == METAFORK_OK && choose(inputs, &machine, values) >= 0)
            error = metafork_take_variant(&schedule->leaves[leaf - 1], values, machine.warp_size, attempt, inputs, leaf, stream, true, &shape);
        else if (error == METAFORK_OK)
            error = attempt(inputs, leaf, false, &shape, stream, NULL);
    }
    if (error == METAFORK_OK) error = attempt(inputs, leaf, true, &shape, stream, arrays);
#if defined(METAFORK_REMEMBERS)
    if (error == METAFORK_OK) {
        memcpy(integers, inputs, bytes);
        metafork_remember(recent, leaf, device, text, arrays, schedule->array_count, &shape);
    }
#else
    (void)recent, (void)integers, (void)count;
#endif
    return error;
}

/* Add the bytes of a region to a set; false where they are not known.  Its array begins `inside` memory of so many `bytes`. */
static inline bool metafork_add_region(const metafork_region *region, int64_t inside, int64_t bytes, const int64_t *values, metafork_bytes *set) {
    long long steps[2 * METAFORK_MOST_STEPS];
    int failed = 0;
    int64_t first = metafork_multiply(&failed, metafork_value(region->first, 1, values, &failed), region->bytes);
    first = metafork_add(&failed, first, inside);
    if (region->span_count > METAFORK_MOST_STEPS) return false;
    for (int i = 0; i < region->span_count; i++) {
        const metafork_span *const span = &region->spans[i];
        const int64_t step = metafork_multiply(&failed, metafork_value(span->step, 1, values, &failed), region->bytes);
        int64_t least = 0, behind = INT64_MAX;
        for (int j = 0; j < span->least_count; j++) {
            const int64_t value = metafork_value(span->least[j], 1, values, &failed);
            if (value > least) least = value;
        }
        for (int j = 0; j < span->behind_count; j++) {
            const int64_t value = metafork_value(span->behind[j], 1, values, &failed);
            if (value < behind) behind = value;
        }
        if (failed) return false;
        if (behind <= least) return true; /* no iteration */
        first = metafork_add(&failed, first, metafork_multiply(&failed, step, least));
        steps[2 * i] = step;
        steps[2 * i + 1] = behind - least;
    }
    const metafork_pattern found = metafork_pattern_of(first, region->bytes, region->span_count, steps);
    if (failed || found.more || found.lost) return false;
    for (int64_t k = 0; k < found.times; k++) {
        const metafork_rows rows = metafork_moved(found.rows, k * found.distance);
        if (rows.first < 0 || metafork_behind(rows) > bytes || !metafork_include(set, rows)) return false;
    }
    return true;
}

/* What a launch does to the memory of each array, which begins `inside` it. */
static inline void metafork_effects(const metafork_schedule *schedule, const int64_t *inside, const int64_t *bytes, const int64_t *values,
                                    metafork_effect *effects) {
    const bool doubt = schedule->doubt >= 0 && values[schedule->doubt] != 0;
    for (int i = 0; i < schedule->array_count; i++) {
        const metafork_use *const use = &schedule->arrays[i];
        metafork_effect *const one = &effects[i];
        one->written = use->written;
        one->exact = use->exact;
        one->overwritten = use->overwritten;
        one->later = use->later;
        one->sure.count = 0;
        for (int j = 0; j < schedule->region_count; j++)
            if (schedule->regions[j].array == i && (doubt || !metafork_add_region(&schedule->regions[j], inside[i], bytes[i], values, &one->sure)))
                one->exact = false;
        one->compared = use->compared || (one->written && !one->exact);
    }
}

/* Whether it was said that there is no device; it is from now on. */
METAFORK_DEFINITION int metafork_no_device_said(void) {
    static int said;
    return __atomic_exchange_n(&said, 1, __ATOMIC_RELAXED);
}

METAFORK_DEFINITION int metafork_untold(const void *const *arrays, int count) {
    int device;
    bool told = true;
    for (int i = 0; i < count; i++)
        told = told && (arrays[i] == NULL || metafork_known_memory((uintptr_t)arrays[i]).bytes > 0);
    return !told && metafork_own_device() && metafork_current_device(&device) == METAFORK_OK;
}

METAFORK_DEFINITION void metafork_reached(long long *reach, long long least, long long most, long long size) {
    const long long far = 1LL << 40; /* more bytes than any memory has */
    reach[0] = 0;
    reach[1] = least > most ? 0 : METAFORK_ENDLESS;
    if (least > most || size < 1 || least <= -far / size || most >= far / size) return;
    reach[0] = least * size;
    reach[1] = (most - least + 1) * size;
}

METAFORK_RUNTIME int metafork_dispatch(const metafork_schedule *schedule, void *const *given, const int64_t *sizes,
                                                    const long long *reach, bool failed, bool empty, bool nothing, int64_t *values, const void *inputs, metafork_choice *choose,
                                                    metafork_attempt *attempt) {
    const int count = schedule->array_count;
    void *arrays[METAFORK_MOST_ARRAYS] = METAFORK_NONE;
    int64_t bytes[METAFORK_MOST_ARRAYS], inside[METAFORK_MOST_ARRAYS];
    if (nothing) return 0;
    for (int i = 0; i < count; i++) {
        arrays[i] = given[i];
        /* Of a null pointer no element is read, or the program is wrong. */
        bytes[i] = sizes[i] == METAFORK_ENDLESS && given[i] == NULL ? 0 : sizes[i];
        inside[i] = 0;
        if (sizes[i] != METAFORK_ENDLESS || given[i] == NULL) continue;
        const metafork_memory memory = metafork_known_memory((uintptr_t)given[i]);
        if (memory.bytes != 0) {
            arrays[i] = (void *)memory.start;
            bytes[i] = memory.bytes;
            inside[i] = (int64_t)((uintptr_t)given[i] - memory.start);
        } else if (reach != NULL && reach[2 * i + 1] >= 0) {
            arrays[i] = (void *)((uintptr_t)given[i] + (uintptr_t)reach[2 * i]);
            bytes[i] = reach[2 * i + 1];
            inside[i] = -reach[2 * i];
        }
    }
    if (failed) {
        metafork_touch_all(METAFORK_UPDATES);
        if (empty) return 0;
        metafork_serial(schedule, METAFORK_SAY_SIZE,
                        "a parameter or the size of an array does not fit its type, or an expression divides by zero");
        return metafork_back_to_host(schedule, arrays, bytes);
    }
    /* An empty nest is no fault: nothing is said, and strict mode goes on. */
    if (empty) return metafork_to_serial(schedule, arrays, bytes);
    for (int i = 0; i < count; i++)
        if (arrays[i] == NULL && bytes[i] != 0) {
            /* Perhaps a condition keeps it from being read. */
            metafork_serial(schedule, METAFORK_SAY_NULL, "array %s is null", schedule->arrays[i].name);
            return metafork_back_to_host(schedule, arrays, bytes);
        }
    for (int i = 0; i < count; i++)
        for (int j = 0; j < i; j++)
            if ((schedule->arrays[i].written || schedule->arrays[j].written) &&
                metafork_meet(arrays[i], bytes[i], arrays[j], bytes[j])) {
                metafork_serial(schedule, METAFORK_SAY_OVERLAP, "arrays %s and %s overlap and one is written", schedule->arrays[j].name,
                                schedule->arrays[i].name);
                return metafork_back_to_host(schedule, arrays, bytes);
            }

    metafork_machine machine;
    int device = 0, error = metafork_own_device() ? metafork_current_device(&device) : METAFORK_EFORKED;
    if (error == METAFORK_OK) error = metafork_machine_query(device, &machine);
    if (error == METAFORK_EFORKED) {
        metafork_serial(schedule, METAFORK_SAY_ERROR, "%s", metafork_error_text(error));
        return metafork_back_to_host(schedule, arrays, bytes);
    }
    if (error == METAFORK_ENODEVICE) {
        /* One line a process says it of all schedules. */
        if (!metafork_no_device_said() || metafork_enabled("METAFORK_STRICT") || metafork_enabled("METAFORK_TRACE"))
            metafork_serial(schedule, METAFORK_SAY_ERROR, "%s", metafork_message(error));
        return metafork_back_to_host(schedule, arrays, bytes);
    }
    if (error != METAFORK_OK) {
        metafork_serial(schedule, METAFORK_SAY_ERROR, "the machine cannot be queried: %s", metafork_message(error));
        return metafork_back_to_host(schedule, arrays, bytes);
    }
    if (metafork_captured(device, NULL)) {
        metafork_serial(schedule, METAFORK_SAY_CAPTURED, "a stream is being captured into a graph, which this function cannot be part of");
        return metafork_back_to_host(schedule, arrays, bytes);
    }
    char unknown[256] = "";
    for (int i = 0; i < count; i++) {
        const size_t length = strlen(unknown);
        if (bytes[i] == METAFORK_ENDLESS)
            snprintf(unknown + length, sizeof unknown - length, "%s%s", length > 0 ? ", " : "", schedule->arrays[i].name);
    }
    if (unknown[0] != '\0') {
        metafork_serial(schedule, METAFORK_SAY_EXTENT, "metafork_extent has not told how many bytes there are of %s", unknown);
        return metafork_back_to_host(schedule, arrays, bytes);
    }
    metafork_check_targets(schedule, &machine);
    const int chosen = choose(inputs, &machine, values);
    if (chosen < 0) {
        metafork_serial(schedule, METAFORK_SAY_START, "%s", chosen == -1 ? "the parameters are outside of what the program allows"
                                                                        : "a derived value does not fit 64 bits");
        if (chosen == -1 && metafork_enabled("METAFORK_STRICT"))
            for (int i = 0; i < schedule->start_count; i++)
                if (!metafork_holds(&schedule->start[i], values)) metafork_print_violation("start", &schedule->start[i], -1, values);
        metafork_touch_all(METAFORK_UPDATES); /* the sizes of arrays may mean nothing */
        return metafork_back_to_host(schedule, arrays, bytes);
    }

    /* First the leaf of the tree, then all in order of preference. */
    int leaf = 0;
    metafork_shape shape = METAFORK_NONE;
    for (int next = 0; next <= schedule->leaf_count && leaf == 0; next++) {
        const int candidate = next == 0 ? chosen : next;
        if (candidate == 0 || (next > 0 && candidate == chosen)) continue;
        const metafork_leaf *const one = &schedule->leaves[candidate - 1];
        if (metafork_take_variant(one, values, machine.warp_size, attempt, inputs, candidate, NULL, false, &shape) == METAFORK_OK) leaf = candidate;
    }
    if (leaf == 0) {
        metafork_serial(schedule, METAFORK_SAY_LEAF, "no leaf fits this machine and these parameters");
        if (metafork_enabled("METAFORK_STRICT"))
            for (int candidate = 1; candidate <= schedule->leaf_count; candidate++) {
                const metafork_leaf *const one = &schedule->leaves[candidate - 1];
                const metafork_shape none = METAFORK_NONE;
                char where[32];
                shape = none; /* of its own variant, which asks for least */
                snprintf(where, sizeof where, "leaf %d", candidate);
                const int refused = attempt(inputs, candidate, false, &shape, NULL, NULL);
                const bool within = metafork_within_limits(&one->variants[one->variant_count - 1], &shape, values, machine.warp_size, where);
                if (within || refused != METAFORK_OK)
                    fprintf(stderr, "metafork:   leaf %d: grid %lldx%lldx%lld, block %lldx%lldx%lld, %lld bytes of shared memory: %s\n", candidate,
                            (long long)shape.grid[0], (long long)shape.grid[1], (long long)shape.grid[2], (long long)shape.block[0],
                            (long long)shape.block[1], (long long)shape.block[2], (long long)shape.shared_bytes, metafork_message(refused));
            }
        return metafork_back_to_host(schedule, arrays, bytes);
    }

    void *pointers[METAFORK_MOST_ARRAYS] = METAFORK_NONE;
    const char *names[METAFORK_MOST_ARRAYS] = METAFORK_NONE;
    bool written[METAFORK_MOST_ARRAYS] = METAFORK_NONE;
    void *stream = NULL;
    for (int i = 0; i < count; i++) {
        names[i] = schedule->arrays[i].name;
        written[i] = schedule->arrays[i].written;
    }
    metafork_effect *const effects = (metafork_effect *)malloc(sizeof *effects * (size_t)(count > 0 ? count : 1));
    const char *step = "moving arrays to the device";
    error = METAFORK_ENOMEM;
    if (effects != NULL) {
        metafork_effects(schedule, inside, bytes, values, effects);
        error = metafork_bring(device, arrays, bytes, names, effects, count, pointers);
    }
    for (int i = 0; i < count && error == METAFORK_OK; i++)
        if (inside[i] != 0) pointers[i] = (void *)((uintptr_t)pointers[i] + (uintptr_t)inside[i]);
    if (error == METAFORK_OK) {
        step = "the launch";
        error = metafork_launch_begins(arrays, bytes, count, &stream);
        if (error == METAFORK_OK) {
            error = attempt(inputs, leaf, true, &shape, stream, pointers);
            /* Also where it failed: what is not known to have begun on a stream may have. */
            const int ended = error == METAFORK_OK || stream != NULL ? metafork_launch_ends(schedule->name, arrays, bytes, written, count) : error;
            if (error == METAFORK_OK) error = ended;
        }
    }
    if (error != METAFORK_OK) {
        const metafork_resident *const any = metafork_any_on(metafork_residents_of_thread(), device);
        char under_way[256];
        metafork_under_way(any != NULL ? any->streams : NULL, error, under_way, sizeof under_way);
        metafork_serial(schedule, METAFORK_SAY_ERROR, "leaf %d: %s failed: %s%s", leaf, step, metafork_message(error), under_way);
        free(effects);
        return metafork_back_to_host(schedule, arrays, bytes);
    }
    for (int i = 0; i < count; i++) metafork_written(arrays[i], bytes[i], &effects[i]);
    free(effects);
    return 1;
}

#endif
