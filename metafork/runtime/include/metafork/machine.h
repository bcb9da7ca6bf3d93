/* The machine that a leaf is chosen for: limits of a block and of a multiprocessor.  C11 and C++.
 *
 * metafork_machine_query reads them from the device (CPU build: the sm_80 preset); every .cu that metafork generates
 * holds it.  The environment may then change single fields:
 *
 *   METAFORK_MACHINE="R=63,T=1024,Z=12288"        entries are separated by commas: a preset's name (sm_20), or
 *                                                 NAME=VALUE where NAME is R, RB, T, Z or a field of metafork_machine;
 *                                                 any other NAME is the target of a performance counter (1.5 or 3/2),
 *                                                 or a limit that a counter brings along, which is no field
 *   METAFORK_TRACE=1                              a line on stderr for each launch; with 2 also for each copy
 *   METAFORK_STRICT=1                             abort where the serial code would have to run instead of a leaf
 */
#ifndef METAFORK_MACHINE_H
#define METAFORK_MACHINE_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What functions of the interface return besides 0 and positive errors of CUDA, HIP or (with the other sign) OpenCL. */
enum {
    METAFORK_OK = 0,
    METAFORK_EINVAL = -1,       /* no such leaf, a null pointer, a parameter outside of what the program allows */
    METAFORK_EOVERFLOW = -2,    /* a parameter or a size does not fit its type, or an expression divides by zero */
    METAFORK_ERESOURCES = -3,   /* the device has not the threads, registers or shared memory that the leaf needs */
    METAFORK_EMACHINE = -4,     /* METAFORK_MACHINE cannot be read */
    METAFORK_EEMPTY = -5,       /* a trip count is less than 1: there is nothing to launch */
    METAFORK_ENOMEM = -6,       /* no memory */
    METAFORK_EUNSUPPORTED = -7, /* the CUDA runtime cannot load PTX as a library, the driver cannot compile it, or OpenCL's device has no code */
    METAFORK_ENODEVICE = -8,    /* there is no CUDA driver, no OpenCL, or no device (the PTX and OpenCL back ends) */
    METAFORK_EFORKED = -9,      /* the device is that of the process that forked this one */
    METAFORK_EELSEWHERE = -10   /* an array is in the memory of another device than the current one */
};

enum { METAFORK_MAX_TARGETS = 8, METAFORK_MAX_NAME = 48 };

/* A number beside the fields, numerator / denominator with denominator >= 1: the target of a performance counter, or a
 * limit that a counter brings along. */
typedef struct metafork_target {
    char name[METAFORK_MAX_NAME];
    int64_t numerator;
    int64_t denominator;
} metafork_target;

typedef struct metafork_machine {
    int64_t registers_per_thread; /* R: 32-bit registers a thread may have */
    int64_t registers_per_block;  /* RB */
    int64_t threads_per_block;    /* T */
    int64_t shared_words;         /* Z: 4-byte words of shared memory a block may have, with opt-in */
    int64_t block_dim_x;
    int64_t block_dim_y;
    int64_t block_dim_z;
    int64_t grid_dim_x;
    int64_t grid_dim_y;
    int64_t grid_dim_z;
    int64_t warp_size;
    int64_t warps_per_sm;
    int64_t blocks_per_sm;
    int64_t registers_per_sm;
    int64_t shared_words_per_sm;
    int64_t shared_words_unit;     /* shared memory is handed out to a block in units of so many words ... */
    int64_t shared_words_reserved; /* ... of which so many are the system's */
    int64_t target_count; /* numbers that METAFORK_MACHINE gave beside the fields */
    metafork_target targets[METAFORK_MAX_TARGETS];
    int64_t compute_capability; /* 80 for sm_80, 0 where it is not known: gives limits that counters bring along */
} metafork_machine;

/* Fill *out for the device; returns 0, a positive CUDA error or a negative METAFORK_E... code. */
int metafork_machine_query(int device, metafork_machine *out);

/* A short English text for a code of the enumeration above. */
static inline const char *metafork_error_text(int code) {
    switch (code) {
    case METAFORK_OK: return "no error";
    case METAFORK_EINVAL: return "an argument is outside of what the program allows";
    case METAFORK_EOVERFLOW: return "a parameter or a size does not fit its type, or an expression divides by zero";
    case METAFORK_ERESOURCES: return "the device has not the threads, registers or shared memory that the leaf needs";
    case METAFORK_EMACHINE: return "METAFORK_MACHINE cannot be read";
    case METAFORK_EEMPTY: return "a trip count is less than 1";
    case METAFORK_ENOMEM: return "out of memory";
    case METAFORK_EUNSUPPORTED: return "this CUDA runtime or driver cannot load PTX";
    case METAFORK_ENODEVICE: return "there is no CUDA driver or no device";
    case METAFORK_EFORKED: return "the device is that of the process that forked this one";
    case METAFORK_EELSEWHERE: return "the array is in the memory of another device than the current one";
    default: return code > 0 ? "CUDA error" : "unknown error";
    }
}

extern char **environ;

/* getenv for METAFORK_..., which a launch asks for several times: few variables of other people begin so. */
static inline const char *metafork_setting(const char *variable) {
    const size_t length = strlen(variable);
    char **at;
    for (at = environ; at != NULL && *at != NULL; at++)
        if ((*at)[0] == 'M' && (*at)[1] == 'E' && strncmp(*at, variable, length) == 0 && (*at)[length] == '=') return *at + length + 1;
    return NULL;
}

/* Whether an environment variable is set to something other than "" and "0". */
static inline int metafork_enabled(const char *variable) {
    const char *value = metafork_setting(variable);
    return value != NULL && value[0] != '\0' && strcmp(value, "0") != 0;
}

/* How a device hands out shared memory, which it does not say itself. */
static inline void metafork_machine_units(metafork_machine *machine) {
    machine->shared_words_unit = machine->compute_capability >= 80 ? 32 : machine->compute_capability > 0 ? 64 : 128;
    machine->shared_words_reserved = machine->compute_capability >= 80 ? 256 : 0;
}

/* Fill the fields of a preset (sm_80; sm_90a is sm_90); returns 0, or METAFORK_EINVAL where there is none of that name. */
static inline int metafork_machine_preset(const char *name, size_t length, metafork_machine *out) {
    static const struct {
        const char *name;
        int64_t registers_per_thread, registers_per_block, threads_per_block, shared_bytes, warps, blocks, registers, shared_bytes_per_sm;
        int64_t warp_size, block_dim_z, grid_dim_x;
    } presets[] = {
        {"sm_20", 63, 32768, 1024, 49152, 48, 8, 32768, 49152, 32, 64, 2147483647},
        {"sm_35", 255, 65536, 1024, 49152, 64, 16, 65536, 49152, 32, 64, 2147483647},
        {"sm_60", 255, 65536, 1024, 49152, 64, 32, 65536, 65536, 32, 64, 2147483647},
        {"sm_70", 255, 65536, 1024, 98304, 64, 32, 65536, 98304, 32, 64, 2147483647},
        {"sm_75", 255, 65536, 1024, 65536, 32, 16, 65536, 65536, 32, 64, 2147483647},
        {"sm_80", 255, 65536, 1024, 166912, 64, 32, 65536, 167936, 32, 64, 2147483647},
        {"sm_86", 255, 65536, 1024, 101376, 48, 16, 65536, 102400, 32, 64, 2147483647},
        {"sm_87", 255, 65536, 1024, 166912, 48, 16, 65536, 167936, 32, 64, 2147483647},
        {"sm_88", 255, 65536, 1024, 101376, 48, 16, 65536, 102400, 32, 64, 2147483647},
        {"sm_89", 255, 65536, 1024, 101376, 48, 24, 65536, 102400, 32, 64, 2147483647},
        {"sm_90", 255, 65536, 1024, 232448, 64, 32, 65536, 233472, 32, 64, 2147483647},
        {"sm_100", 255, 65536, 1024, 232448, 64, 32, 65536, 233472, 32, 64, 2147483647},
        {"sm_103", 255, 65536, 1024, 232448, 64, 32, 65536, 233472, 32, 64, 2147483647},
        {"sm_110", 255, 65536, 1024, 232448, 48, 24, 65536, 233472, 32, 64, 2147483647},
        {"sm_120", 255, 65536, 1024, 101376, 48, 24, 65536, 102400, 32, 64, 2147483647},
        {"sm_121", 255, 65536, 1024, 101376, 48, 24, 65536, 102400, 32, 64, 2147483647},
        {"gfx90a", 256, 131072, 1024, 65536, 32, 16, 131072, 65536, 64, 1024, 4194303},
        {"gfx942", 256, 131072, 1024, 65536, 32, 16, 131072, 65536, 64, 1024, 4194303},
        {"gfx1100", 256, 196608, 1024, 65536, 64, 32, 196608, 131072, 32, 1024, 4194303},
    };
    size_t i;
    if (length >= 6 && memcmp(name, "sm_", 3) == 0 && (name[length - 1] == 'a' || name[length - 1] == 'f') &&
        (length == 6 ? name[3] == '9' : length == 7 && name[3] == '1'))
        length--;
    for (i = 0; i < sizeof presets / sizeof presets[0]; i++) {
        if (strlen(presets[i].name) != length || memcmp(presets[i].name, name, length) != 0) continue;
        out->compute_capability = presets[i].name[0] == 's' ? atoi(presets[i].name + 3) : 0;
        out->registers_per_thread = presets[i].registers_per_thread;
        out->registers_per_block = presets[i].registers_per_block;
        out->threads_per_block = presets[i].threads_per_block;
        out->shared_words = presets[i].shared_bytes / 4;
        out->block_dim_x = 1024;
        out->block_dim_y = 1024;
        out->block_dim_z = presets[i].block_dim_z;
        out->grid_dim_x = presets[i].grid_dim_x;
        out->grid_dim_y = 65535;
        out->grid_dim_z = 65535;
        out->warp_size = presets[i].warp_size;
        out->warps_per_sm = presets[i].warps;
        out->blocks_per_sm = presets[i].blocks;
        out->registers_per_sm = presets[i].registers;
        out->shared_words_per_sm = presets[i].shared_bytes_per_sm / 4;
        metafork_machine_units(out);
        return METAFORK_OK;
    }
    return METAFORK_EINVAL;
}

/* The field of that name (R, RB, T, Z or the field's own), or NULL. */
static inline int64_t *metafork_machine_field(metafork_machine *machine, const char *name, size_t length) {
    const struct {
        const char *symbol, *name;
        int64_t *field;
    } fields[] = {
        {"R", "registers_per_thread", &machine->registers_per_thread},
        {"RB", "registers_per_block", &machine->registers_per_block},
        {"T", "threads_per_block", &machine->threads_per_block},
        {"Z", "shared_words", &machine->shared_words},
        {"", "block_dim_x", &machine->block_dim_x},
        {"", "block_dim_y", &machine->block_dim_y},
        {"", "block_dim_z", &machine->block_dim_z},
        {"", "grid_dim_x", &machine->grid_dim_x},
        {"", "grid_dim_y", &machine->grid_dim_y},
        {"", "grid_dim_z", &machine->grid_dim_z},
        {"", "warp_size", &machine->warp_size},
        {"", "warps_per_sm", &machine->warps_per_sm},
        {"", "blocks_per_sm", &machine->blocks_per_sm},
        {"", "registers_per_sm", &machine->registers_per_sm},
        {"", "shared_words_per_sm", &machine->shared_words_per_sm},
        {"", "shared_words_unit", &machine->shared_words_unit},
        {"", "shared_words_reserved", &machine->shared_words_reserved},
    };
    size_t i;
    if (length == 0) return NULL;
    for (i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        if (strlen(fields[i].symbol) == length && memcmp(fields[i].symbol, name, length) == 0) return fields[i].field;
        if (strlen(fields[i].name) == length && memcmp(fields[i].name, name, length) == 0) return fields[i].field;
    }
    return NULL;
}

/* Whether a machine can have that number in that field: none has no threads, blocks, warps or units. */
static inline int metafork_machine_possible(const metafork_machine *machine, const int64_t *field, int64_t value) {
    const int positive = (field >= &machine->block_dim_x && field <= &machine->warps_per_sm) || field == &machine->shared_words_unit;
    if (field == &machine->warp_size && value > 1024) return 0;
    return positive ? value >= 1 : value >= 0;
}

/* Read digits; returns where they end, or NULL where there are none or the number exceeds 2^62. */
static inline const char *metafork_read_digits(const char *text, int64_t *value) {
    const char *at = text;
    int64_t number = *value;
    while (*at >= '0' && *at <= '9') {
        if (number > (INT64_C(1) << 62) / 10 - 1) return NULL;
        number = number * 10 + (*at++ - '0');
    }
    *value = number;
    return at == text ? NULL : at;
}

/* Read 12, 0.75 or 3/4 as a fraction; returns where it ends, or NULL. */
static inline const char *metafork_read_fraction(const char *text, int64_t *numerator, int64_t *denominator) {
    const char *at;
    *numerator = 0;
    *denominator = 1;
    at = metafork_read_digits(text, numerator);
    if (at == NULL) return NULL;
    if (*at == '/') {
        *denominator = 0;
        at = metafork_read_digits(at + 1, denominator);
        return at == NULL || *denominator == 0 ? NULL : at;
    }
    if (*at == '.') {
        const char *start = at + 1;
        at = metafork_read_digits(start, numerator);
        if (at == NULL || at - start > 17) return NULL;
        for (; start < at; start++) *denominator *= 10;
    }
    return at;
}

/* Apply a text of the form of METAFORK_MACHINE.  Returns 0, or METAFORK_EMACHINE with *fault at the entry at fault;
 * fields may then have changed in part. */
static inline int metafork_machine_override(metafork_machine *machine, const char *text, const char **fault) {
    const char *at = text;
    while (*at == ' ') at++;
    if (*at == '\0') return METAFORK_OK;
    for (;;) {
        const char *name, *end;
        int64_t numerator, denominator;
        size_t length;
        while (*at == ' ') at++;
        name = at;
        *fault = name;
        while ((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') || (*at >= '0' && *at <= '9') || *at == '_') at++;
        length = (size_t)(at - name);
        if (length == 0 || length >= METAFORK_MAX_NAME) return METAFORK_EMACHINE;
        while (*at == ' ') at++;
        if (*at != '=') {
            if (metafork_machine_preset(name, length, machine) != METAFORK_OK) return METAFORK_EMACHINE;
        } else {
            int64_t *field = metafork_machine_field(machine, name, length);
            at++;
            while (*at == ' ') at++;
            end = metafork_read_fraction(at, &numerator, &denominator);
            if (end == NULL) return METAFORK_EMACHINE;
            at = end;
            if (field != NULL) {
                if (denominator != 1 || !metafork_machine_possible(machine, field, numerator)) return METAFORK_EMACHINE;
                *field = numerator;
            } else {
                int64_t i = 0;
                while (i < machine->target_count &&
                       (strlen(machine->targets[i].name) != length || memcmp(machine->targets[i].name, name, length) != 0))
                    i++;
                if (i == METAFORK_MAX_TARGETS) return METAFORK_EMACHINE;
                memcpy(machine->targets[i].name, name, length);
                machine->targets[i].name[length] = '\0';
                machine->targets[i].numerator = numerator;
                machine->targets[i].denominator = denominator;
                if (i == machine->target_count) machine->target_count++;
            }
        }
        while (*at == ' ') at++;
        if (*at == '\0') return METAFORK_OK;
        if (*at != ',') return METAFORK_EMACHINE;
        at++;
    }
}

#ifdef __cplusplus
}
#endif
#endif
